// The eigenvalues of largest magnitude of a symmetric matrix, with their vectors: a few of many.
//
// Householder's reduction to tridiagonal form, bisection by Sturm's counts for the eigenvalues that
// are wanted, inverse iteration for their vectors. Products are rounded, so that messages do not
// depend on the machine. (math/eigh.h has all of them, slower and to high relative accuracy.)
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "compress/norms.h"

namespace buropt {

class ExtremeEigen {
 public:
  /// Numbers of memory for a matrix (n, n) of which `count` eigenvalues are wanted.
  static std::size_t memory_size(std::size_t n, std::size_t count) noexcept {
    return (count + 8) * n + count;
  }

  /// Of the symmetric matrix a (n, n), whose largest magnitude is of the order of 1; overwrites it.
  ExtremeEigen(double* a, std::size_t n, std::size_t count, double* memory) noexcept
      : a_(a), n_(n), count_(count), vectors_(memory), values_(memory + (count + 8) * n) {
    double* next = memory + count * n;
    for (double** part : {&diagonal_, &off_, &q_, &u0_, &u1_, &u2_, &lower_, &swapped_}) {
      *part = std::exchange(next, next + n);
    }
    reduce();
    pick_values();
    for (std::size_t r = 0; r < count_; ++r) find_vector(r);
    for (std::size_t r = 0; r < count_; ++r) transform_back(vector(r));
  }

  /// The r-th largest in magnitude; of two that are equal in it the positive one is first.
  double value(std::size_t r) const noexcept { return values_[r]; }
  /// Of length 1, the entry of largest magnitude positive.
  std::span<const double> vector_of(std::size_t r) const noexcept {
    return {vectors_ + r * n_, n_};
  }

 private:
  static constexpr double kNothing = 0x1p-900;
  static constexpr int kIterations = 3;  // of inverse iteration; one is enough for most vectors

  std::span<double> vector(std::size_t r) const noexcept { return {vectors_ + r * n_, n_}; }
  /// Row i of the matrix from column k on; that of a finished row k, from k + 1, is its reflector.
  std::span<double> row(std::size_t i, std::size_t k) const noexcept {
    return {a_ + i * n_ + k, n_ - k};
  }

  /// A = H_0 ... H_{n-3} T H_{n-3} ... H_0 with H_k = I - 2 v v^T, v of length 1 or 0.
  void reduce() noexcept {
    for (std::size_t k = 0; k + 2 < n_; ++k) {
      const std::span<double> v = row(k, k + 1);
      const double length = norm_2(std::span<const double>(v));
      if (length < kNothing) {
        off_[k] = 0;
        std::fill(v.begin(), v.end(), 0.0);
        continue;
      }
      for (double& entry : v) entry /= length;
      off_[k] = -std::copysign(length, v[0]);
      const double unit = std::sqrt(2 * (1 + std::abs(v[0])));
      v[0] += std::copysign(1.0, v[0]);
      for (double& entry : v) entry /= unit;
      const std::span<double> q(q_ + k + 1, v.size());
      for (std::size_t i = k + 1; i < n_; ++i) q_[i] = 2 * product(row(i, k + 1), v);
      add_multiple(-product(q, v), v, q);
      for (std::size_t i = k + 1; i < n_; ++i) {
        add_multiple(-v[i - k - 1], q, row(i, k + 1));
        add_multiple(-q_[i], v, row(i, k + 1));
      }
    }
    for (std::size_t k = 0; k < n_; ++k) diagonal_[k] = a_[k * n_ + k];
    if (n_ > 1) off_[n_ - 2] = a_[(n_ - 2) * n_ + n_ - 1];
    off_[n_ - 1] = 0;
    radius_ = kNothing;
    for (std::size_t k = 0; k < n_; ++k) {
      const double beside = std::abs(off_[k]) + (k > 0 ? std::abs(off_[k - 1]) : 0.0);
      radius_ = std::max(radius_, std::abs(diagonal_[k]) + beside);
    }
  }

  /// How many eigenvalues are below x.
  std::size_t below(double x) const noexcept {
    std::size_t found = 0;
    double pivot = 1;
    for (std::size_t k = 0; k < n_; ++k) {
      const double square = k > 0 ? rounded_product(off_[k - 1], off_[k - 1]) : 0.0;
      pivot = diagonal_[k] - x - square / pivot;
      if (std::abs(pivot) < kNothing) pivot = -kNothing;
      found += pivot < 0;
    }
    return found;
  }

  /// The eigenvalue before which there are k.
  double eigenvalue(std::size_t k) const noexcept {
    double low = -1.001 * radius_, high = 1.001 * radius_;
    while (high - low > std::numeric_limits<double>::epsilon() * radius_) {
      const double middle = low + (high - low) / 2;
      if (middle == low || middle == high) break;
      (below(middle) > k ? high : low) = middle;
    }
    return low + (high - low) / 2;
  }

  /// From both ends inwards.
  void pick_values() noexcept {
    std::size_t first = 0, last = n_ - 1;
    double lowest = eigenvalue(first), highest = eigenvalue(last);
    for (std::size_t r = 0; r < count_; ++r) {
      const bool positive = highest >= -lowest;
      values_[r] = positive ? highest : lowest;
      if (first == last) continue;  // the last one of all
      if (positive) {
        highest = eigenvalue(--last);
      } else {
        lowest = eigenvalue(++first);
      }
    }
  }

  void find_vector(std::size_t r) noexcept {
    const std::span<double> x = vector(r);
    std::uint32_t bits = static_cast<std::uint32_t>(r) + 1;
    for (double& entry : x) {
      bits = bits * 1664525u + 1013904223u;
      entry = 0.5 + bits * 0x1p-32;
    }
    factorize(values_[r]);
    for (int iteration = 0; iteration < kIterations; ++iteration) {
      solve(x);
      normalize(x);
      for (int again = 0; again < 2; ++again) {  // once leaves rounding errors that grow
        for (std::size_t s = 0; s < r; ++s) add_multiple(-product(x, vector(s)), vector(s), x);
      }
      normalize(x);
    }
  }

  static void normalize(std::span<double> x) noexcept {
    const double largest = norm_inf(std::span<const double>(x));
    for (double& entry : x) entry /= largest;
    const double length = std::sqrt(product(x, x));
    for (double& entry : x) entry /= length;
  }

  /// T - w I = P L U by elimination with row exchanges.
  void factorize(double w) noexcept {
    const double least = std::numeric_limits<double>::epsilon() * radius_;
    double pivot = diagonal_[0] - w, right = off_[0];
    for (std::size_t k = 0; k + 1 < n_; ++k) {
      const double next = diagonal_[k + 1] - w;
      const bool swap = std::abs(off_[k]) > std::abs(pivot);
      if (std::abs(pivot) < least && !swap) pivot = least;
      lower_[k] = swap ? pivot / off_[k] : off_[k] / pivot;
      swapped_[k] = swap;
      u0_[k] = swap ? off_[k] : pivot;
      u1_[k] = swap ? next : right;
      u2_[k] = swap ? off_[k + 1] : 0.0;
      const double eliminated = rounded_product(lower_[k], u1_[k]);
      pivot = (swap ? right : next) - eliminated;
      right = swap ? -rounded_product(lower_[k], off_[k + 1]) : off_[k + 1];
    }
    u0_[n_ - 1] = std::abs(pivot) < least ? least : pivot;
  }

  void solve(std::span<double> x) const noexcept {
    for (std::size_t k = 0; k + 1 < n_; ++k) {
      if (swapped_[k] != 0) std::swap(x[k], x[k + 1]);
      x[k + 1] -= rounded_product(lower_[k], x[k]);
    }
    for (std::size_t k = n_; k-- > 0;) {
      if (k + 1 < n_) x[k] -= rounded_product(u1_[k], x[k + 1]);
      if (k + 2 < n_) x[k] -= rounded_product(u2_[k], x[k + 2]);
      x[k] /= u0_[k];
    }
  }

  /// The vector of A for one of T.
  void transform_back(std::span<double> x) const noexcept {
    for (std::size_t k = n_ < 2 ? 0 : n_ - 2; k-- > 0;) {
      const std::span<const double> v = row(k, k + 1);
      const std::span<double> part = x.subspan(k + 1);
      add_multiple(-2 * product(v, part), v, part);
    }
    const double largest = *std::max_element(
        x.begin(), x.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
    if (largest < 0) {
      for (double& entry : x) entry = -entry;
    }
  }

  double* a_;
  std::size_t n_, count_;
  double *vectors_, *values_, *diagonal_, *off_, *q_, *u0_, *u1_, *u2_, *lower_, *swapped_;
  double radius_ = 0;
};

}  // namespace buropt
