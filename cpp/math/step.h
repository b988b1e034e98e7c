// x -= step * g: the step of gradient descent.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/pool.h"
#include "base/simd.h"

namespace buropt {

namespace detail {

template <class T>
void subtract_scaled(std::int64_t n, T step, const T* g, T* x) noexcept {
  constexpr int kLanes = Pack<T>::size;
  const Pack<T> steps(step);
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    (Pack<T>::load(x + i) - rounded_product(steps, Pack<T>::load(g + i))).store(x + i);
  }
  for (; i < n; ++i) x[i] -= rounded_product(step, g[i]);
}

}  // namespace detail

/// x (n,) -= step g, each product rounded before it is subtracted: the numbers of NumPy's
/// `x -= step * g`.
template <class T>
void subtract_scaled(std::int64_t n, T step, const T* g, T* x, int threads) {
  constexpr std::int64_t kPart = 1 << 15;  // less is not worth another thread
  const std::int64_t parts = (n + kPart - 1) / kPart;
  Pool::run(parts, threads, [&](std::int64_t part, int) {
    const std::int64_t begin = part * kPart;
    detail::subtract_scaled(std::min(kPart, n - begin), step, g + begin, x + begin);
  });
}

}  // namespace buropt
