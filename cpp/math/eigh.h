// A = V diag(w) V^T of a symmetric matrix, by Jacobi's rotations: small, dense, row-major.
//
// Slower than a reduction to tridiagonal form, and short: each rotation makes one element of the
// matrix 0, and sweeps over all of them converge quadratically.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace buropt {

template <class T>
class JacobiEigen {
 public:
  /// a: scratch (n, n); vectors (n, n), which become rows.
  JacobiEigen(T* a, T* vectors, std::int64_t n) noexcept : a_(a), v_(vectors), n_(n) {}

  /// Of the lower triangle of `matrix`; false if it is not finite.
  bool run(const T* matrix) noexcept {
    T total = 0;
    for (std::int64_t i = 0; i < n_; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) {
        at(i, j) = at(j, i) = matrix[i * n_ + j];
        total += std::abs(at(i, j));
      }
    }
    if (!(total <= std::numeric_limits<T>::max())) return false;
    std::fill_n(v_, n_ * n_, T(0));
    for (std::int64_t i = 0; i < n_; ++i) v_[i * n_ + i] = T(1);
    for (int sweep = 0; sweep < kMaxSweeps && rotate_all(); ++sweep) {
    }
    return true;
  }

  T eigenvalue(std::int64_t k) const noexcept { return a_[k * n_ + k]; }
  const T* eigenvector(std::int64_t k) const noexcept { return v_ + k * n_; }

 private:
  static constexpr int kMaxSweeps = 50;  // about 10 are needed

  T& at(std::int64_t i, std::int64_t j) const noexcept { return a_[i * n_ + j]; }

  /// One sweep; whether it found anything to do.
  bool rotate_all() noexcept {
    bool changed = false;
    for (std::int64_t p = 0; p < n_; ++p) {
      for (std::int64_t q = p + 1; q < n_; ++q) {
        if (at(p, q) == T(0)) continue;
        if (is_negligible(p, q))
          at(p, q) = at(q, p) = T(0);
        else
          rotate(p, q);
        changed = true;
      }
    }
    return changed;
  }

  bool is_negligible(std::int64_t p, std::int64_t q) const noexcept {
    const T small = std::abs(at(p, q)) / 8;
    const T a = std::abs(at(p, p));
    const T b = std::abs(at(q, q));
    return a + small == a && b + small == b;
  }

  /// In the plane of axes p and q, by the angle that makes a[p, q] 0.
  void rotate(std::int64_t p, std::int64_t q) noexcept {
    const T off = at(p, q);
    const T theta = (at(q, q) - at(p, p)) / (2 * off);
    const T tangent = std::copysign(T(1), theta) / (std::abs(theta) + std::hypot(theta, T(1)));
    const T c = T(1) / std::hypot(tangent, T(1));
    const T s = tangent * c;
    at(p, p) -= tangent * off;
    at(q, q) += tangent * off;
    at(p, q) = at(q, p) = T(0);
    for (std::int64_t k = 0; k < n_; ++k) {
      if (k == p || k == q) continue;
      turn(at(p, k), at(q, k), c, s);
      at(k, p) = at(p, k);
      at(k, q) = at(q, k);
    }
    for (std::int64_t k = 0; k < n_; ++k) turn(v_[p * n_ + k], v_[q * n_ + k], c, s);
  }

  static void turn(T& x, T& y, T c, T s) noexcept {
    const T old = x;
    x = c * old - s * y;
    y = s * old + c * y;
  }

  T* a_;
  T* v_;
  std::int64_t n_;
};

/// The eigenvalues (n,) of the symmetric matrix in the lower triangle of a (n, n), ascending, and
/// the eigenvectors in the columns of v (n, n): of length 1, their largest element positive. All
/// NaN if the matrix is not finite. scratch: 2 n n numbers and n integers.
template <class T>
void eigh(const T* a, std::int64_t n, T* w, T* v, T* scratch, std::int64_t* order) noexcept {
  JacobiEigen<T> eigen(scratch, scratch + n * n, n);
  if (!eigen.run(a)) {
    std::fill_n(w, n, std::numeric_limits<T>::quiet_NaN());
    std::fill_n(v, n * n, std::numeric_limits<T>::quiet_NaN());
    return;
  }
  for (std::int64_t k = 0; k < n; ++k) order[k] = k;
  std::sort(order, order + n, [&](std::int64_t i, std::int64_t j) {
    return eigen.eigenvalue(i) < eigen.eigenvalue(j) ||
           (eigen.eigenvalue(i) == eigen.eigenvalue(j) && i < j);
  });
  for (std::int64_t k = 0; k < n; ++k) {
    w[k] = eigen.eigenvalue(order[k]);
    const T* vector = eigen.eigenvector(order[k]);
    const T largest =
        *std::max_element(vector, vector + n, [](T x, T y) { return std::abs(x) < std::abs(y); });
    for (std::int64_t i = 0; i < n; ++i) v[i * n + k] = largest < T(0) ? -vector[i] : vector[i];
  }
}

}  // namespace buropt
