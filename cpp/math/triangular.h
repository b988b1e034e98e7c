// Triangular systems with several right-hand sides: small, dense, row-major, solved in place.
//
// A right-hand side x (n, k) is a matrix whose columns are the vectors. Order of summation: for one
// column a row's sum is a dot product (dot.h), for several it runs over the unknowns in the order
// in which they are found.
#pragma once

#include <cstdint>

#include "math/dot.h"

namespace buropt {

/// y -= factor * x.
template <class T>
void subtract_multiple(T factor, const T* x, T* y, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) y[i] = multiply_add(-factor, x[i], y[i]);
}

template <class T>
void divide(T* x, T divisor, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) x[i] /= divisor;
}

/// A triangle of a matrix (n, n); what lies on its other side is not read, nor is the diagonal of a
/// unit triangle, which counts as ones.
template <class T>
struct Triangle {
  const T* a;
  std::int64_t n;
  bool unit = false;

  const T* row(std::int64_t i) const noexcept { return a + i * n; }
  T diagonal(std::int64_t i) const noexcept { return unit ? T(1) : a[i * n + i]; }
};

/// x = L^-1 x for the lower triangle.
template <class T>
void solve_lower(const Triangle<T>& l, T* x, std::int64_t k) noexcept {
  for (std::int64_t i = 0; i < l.n; ++i) {
    if (k == 1) {
      x[i] -= dot(l.row(i), x, i);
    } else {
      for (std::int64_t j = 0; j < i; ++j) subtract_multiple(l.row(i)[j], x + j * k, x + i * k, k);
    }
    if (!l.unit) divide(x + i * k, l.diagonal(i), k);
  }
}

/// x = U^-1 x for the upper triangle.
template <class T>
void solve_upper(const Triangle<T>& u, T* x, std::int64_t k) noexcept {
  for (std::int64_t i = u.n - 1; i >= 0; --i) {
    if (k == 1) {
      x[i] -= dot(u.row(i) + i + 1, x + i + 1, u.n - i - 1);
    } else {
      for (std::int64_t j = i + 1; j < u.n; ++j) {
        subtract_multiple(u.row(i)[j], x + j * k, x + i * k, k);
      }
    }
    if (!u.unit) divide(x + i * k, u.diagonal(i), k);
  }
}

/// x = L^-T x for the lower triangle.
template <class T>
void solve_lower_transposed(const Triangle<T>& l, T* x, std::int64_t k) noexcept {
  for (std::int64_t i = l.n - 1; i >= 0; --i) {
    if (!l.unit) divide(x + i * k, l.diagonal(i), k);
    if (k == 1) {
      subtract_multiple(x[i], l.row(i), x, i);
    } else {
      for (std::int64_t j = 0; j < i; ++j) subtract_multiple(l.row(i)[j], x + i * k, x + j * k, k);
    }
  }
}

/// x = U^-T x for the upper triangle.
template <class T>
void solve_upper_transposed(const Triangle<T>& u, T* x, std::int64_t k) noexcept {
  for (std::int64_t i = 0; i < u.n; ++i) {
    if (!u.unit) divide(x + i * k, u.diagonal(i), k);
    if (k == 1) {
      subtract_multiple(x[i], u.row(i) + i + 1, x + i + 1, u.n - i - 1);
    } else {
      for (std::int64_t j = i + 1; j < u.n; ++j) {
        subtract_multiple(u.row(i)[j], x + i * k, x + j * k, k);
      }
    }
  }
}

}  // namespace buropt
