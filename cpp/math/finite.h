// Whether numbers are finite.
#pragma once

#include <cstdint>

#include "base/simd.h"

namespace buropt {

template <class T>
BUROPT_INLINE bool all_finite(const T* x, std::int64_t n) noexcept {
  constexpr int kLanes = Pack<T>::size;
  constexpr int kChains = 4;
  // 0 times what is not finite is NaN, and stays in the sum.
  if (n < kLanes) {
    // Not under a mask: such a load waits until what has just been stored there is in the cache.
    T sum(0);
    for (std::int64_t i = 0; i < n; ++i) sum += x[i] * T(0);
    return !(sum != sum);
  }
  const Pack<T> zero(T(0));
  Pack<T> sums[kChains] = {zero, zero, zero, zero};
  std::int64_t i = 0;
  for (; i + kChains * kLanes <= n; i += kChains * kLanes) {
#pragma GCC unroll 4
    for (int c = 0; c < kChains; ++c) sums[c] += Pack<T>::load(x + i + c * kLanes) * zero;
  }
  for (; i + kLanes <= n; i += kLanes) sums[0] += Pack<T>::load(x + i) * zero;
  sums[1] += Pack<T>::load(x + n - kLanes) * zero;
  const Pack<T> sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return !any(sum != sum);
}

}  // namespace buropt
