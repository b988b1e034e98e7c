// A = L L^T: small, dense, row-major.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "math/dot.h"

namespace buropt {

/// The lower triangle L (n, n) of a positive definite matrix, with zeros above the diagonal. Of `a`
/// only the lower triangle is read. If it is not positive definite all of L is NaN.
template <class T>
void cholesky(const T* a, std::int64_t n, T* l) noexcept {
  std::fill_n(l, n * n, T(0));
  for (std::int64_t i = 0; i < n; ++i) {
    T* row = l + i * n;
    for (std::int64_t j = 0; j < i; ++j) {
      const T* other = l + j * n;
      row[j] = (a[i * n + j] - dot(row, other, j)) / other[j];
    }
    const T square = a[i * n + i] - dot(row, row, i);
    if (!(square > T(0))) {
      std::fill_n(l, n * n, std::numeric_limits<T>::quiet_NaN());
      return;
    }
    row[i] = std::sqrt(square);
  }
}

}  // namespace buropt
