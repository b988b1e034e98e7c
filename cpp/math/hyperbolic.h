// tanh.
#pragma once

#include "base/simd.h"
#include "math/exp.h"

namespace buropt {

// With u = (e^(2|x|) - 1) / 2, tanh |x| = u / (u + 1): nothing cancels, small x stay exact.
template <Real T>
BUROPT_INLINE T tanh(T x) noexcept {
  const T largest = T(20);  // tanh rounds to 1 well before, in both precisions
  const T magnitude = min(largest, abs(x));
  const auto [scale, fraction] = detail::expm1_parts(magnitude + magnitude);
  const T u = fma(scale, fraction, scale - T(0.5f));
  const T denominator = u + T(1);
  // u + 1 = denominator + lost exactly
  const T lost = min(u, T(1)) - (denominator - max(u, T(1)));
  const T quotient = u / denominator;
  // Undoes the rounding of the denominator; 1 - quotient is its reciprocal.
  const T y = fma(-quotient * lost, T(1) - quotient, quotient);
  return from_bits<T>(bits(y) | sign_bit(x));
}

}  // namespace buropt
