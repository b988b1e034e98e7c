// Polynomials with constant coefficients, the core of every elementary function.
#pragma once

#include <cstddef>

#include "base/simd.h"

namespace buropt::detail {

// c[i] + z c[i + 2] + z^2 c[i + 4] + ...
template <std::size_t i, Real T, class S, std::size_t n>
BUROPT_INLINE T every_other(T z, const S (&c)[n]) noexcept {
  if constexpr (i + 2 < n) {
    return fma(z, every_other<i + 2>(z, c), T(c[i]));
  } else {
    return T(c[i]);
  }
}

// c[0] + c[1] x + c[2] x^2 + ... The even and the odd terms are two independent Horner chains: half
// the latency of one chain, which the scalar form waits for, at the price of one multiplication.
template <Real T, class S, std::size_t n>
BUROPT_INLINE T polynomial(T x, const S (&c)[n]) noexcept {
  const T z = x * x;
  return fma(x, every_other<1>(z, c), every_other<0>(z, c));
}

}  // namespace buropt::detail
