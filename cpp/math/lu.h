// PA = LU with partial pivoting: small, dense, row-major.
//
// The factors of a matrix (n, n) are n + 1 rows: U with the strict part of L below its diagonal,
// then the row with which row k was exchanged in step k. A pivot that is exactly 0 leaves its
// column as it is, so the diagonal of U tells that the matrix is singular.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "math/triangular.h"

namespace buropt {

template <class T>
class Lu {
 public:
  Lu(T* factors, std::int64_t n) noexcept : lu_(factors), n_(n) {}

  /// Factors the matrix that stands in the first n rows.
  void factor() noexcept {
    for (std::int64_t k = 0; k < n_; ++k) {
      const std::int64_t pivot = find_pivot(k);
      lu_[n_ * n_ + k] = static_cast<T>(pivot);
      if (pivot != k) std::swap_ranges(row(k), row(k) + n_, row(pivot));
      if (row(k)[k] == T(0)) continue;
      for (std::int64_t i = k + 1; i < n_; ++i) {
        row(i)[k] /= row(k)[k];
        subtract_multiple(row(i)[k], row(k) + k + 1, row(i) + k + 1, n_ - k - 1);
      }
    }
  }

 private:
  T* row(std::int64_t i) const noexcept { return lu_ + i * n_; }

  /// The row of the largest element of column k; of a NaN if there is one, so that it spreads.
  std::int64_t find_pivot(std::int64_t k) const noexcept {
    std::int64_t best = k;
    for (std::int64_t i = k + 1; i < n_; ++i) {
      if (!(std::abs(row(i)[k]) <= std::abs(row(best)[k]))) best = i;
    }
    return best;
  }

  T* lu_;
  std::int64_t n_;
};

/// What the factors of a matrix are good for.
template <class T>
class Factors {
 public:
  Factors(const T* factors, std::int64_t n) noexcept : lu_(factors), n_(n) {}

  T diagonal(std::int64_t i) const noexcept { return lu_[i * n_ + i]; }

  bool is_singular() const noexcept {
    for (std::int64_t i = 0; i < n_; ++i) {
      if (diagonal(i) == T(0)) return true;
    }
    return false;
  }

  /// x (n, k) = A^-1 x, or A^-T x; NaN if A is singular.
  void solve(T* x, std::int64_t k, bool transposed) const noexcept {
    if (is_singular()) {
      std::fill_n(x, n_ * k, std::numeric_limits<T>::quiet_NaN());
      return;
    }
    const Triangle<T> l{lu_, n_, true};
    const Triangle<T> u{lu_, n_, false};
    if (transposed) {
      solve_upper_transposed(u, x, k);
      solve_lower_transposed(l, x, k);
      for (std::int64_t i = n_ - 1; i >= 0; --i) exchange(x, k, i);
    } else {
      for (std::int64_t i = 0; i < n_; ++i) exchange(x, k, i);
      solve_lower(l, x, k);
      solve_upper(u, x, k);
    }
  }

  /// Of the determinant: 1, -1, 0 for a singular matrix, or NaN.
  T sign() const noexcept {
    T result = 1;
    for (std::int64_t i = 0; i < n_; ++i) {
      if (exchanged_with(i) != i) result = -result;
      const T u = diagonal(i);
      result *= u > T(0) ? T(1) : u < T(0) ? T(-1) : u;
    }
    return result == T(0) ? T(0) : result;  // no -0
  }

  T determinant() const noexcept {
    T result = 1;
    for (std::int64_t i = 0; i < n_; ++i) {
      result *= exchanged_with(i) != i ? -diagonal(i) : diagonal(i);
    }
    return result;
  }

  /// log |det A|, -inf for a singular matrix.
  T log_determinant() const noexcept {
    if (is_singular()) return -std::numeric_limits<T>::infinity();
    T result = 0;
    for (std::int64_t i = 0; i < n_; ++i) result += std::log(std::abs(diagonal(i)));
    return result;
  }

 private:
  /// A row from i on, whatever stands there.
  std::int64_t exchanged_with(std::int64_t i) const noexcept {
    const T row = lu_[n_ * n_ + i];
    return row >= T(i) && row < T(n_) ? static_cast<std::int64_t>(row) : i;
  }

  void exchange(T* x, std::int64_t k, std::int64_t i) const noexcept {
    const std::int64_t other = exchanged_with(i);
    if (other != i) std::swap_ranges(x + i * k, x + (i + 1) * k, x + other * k);
  }

  const T* lu_;
  std::int64_t n_;
};

}  // namespace buropt
