// sinh, cosh, tanh.
#pragma once

#include "base/simd.h"
#include "math/exp.h"

namespace buropt {

// With u = (e^(2|x|) - 1) / 2, tanh |x| = u / (u + 1): nothing cancels, small x stay exact. The
// roundings of u and of u + 1 are put back after the division, with 1 - tanh |x| = 1 / (u + 1).
template <Real T>
BUROPT_INLINE T tanh(T x) noexcept {
  const T largest = T(20);  // tanh rounds to 1 well before, in both precisions
  const T magnitude = min(largest, abs(x));
  const auto [scale, fraction, fraction_error] = detail::expm1_parts(magnitude + magnitude);
  const T u = fma(scale, fraction, scale - T(0.5f));
  const T denominator = u + T(1);
  const T lost = min(u, T(1)) - (denominator - max(u, T(1)));
  const T quotient = u / denominator;
  const T reciprocal = T(1) - quotient;
  const T missing = rounded_product(scale * fraction_error, reciprocal);
  const T y = fma(fma(-quotient, lost, missing), reciprocal, quotient);
  return from_bits<T>(bits(y) | sign_bit(x));
}

// With u = e^|x| - 1, sinh |x| = (u + u / (u + 1)) / 2: again nothing cancels.
template <Real T>
BUROPT_INLINE T sinh(T x) noexcept {
  const T magnitude = min(T(detail::ExpConstants<Scalar<T>>::kHalfOverflow), abs(x));
  const auto [scale, fraction, unused] = detail::expm1_parts<2>(magnitude);
  const T quarter = fma(scale, fraction, scale - T(0.25f));  // u / 4
  const T y = fma(T(2), quarter, quarter / fma(T(2), quarter, T(0.5f)));
  const MaskOf<T> identity = abs(x) < T(detail::ExpConstants<Scalar<T>>::kIdentity);
  return select(identity | isnan(x), x, copysign(y, x));
}

// (e^|x| + e^-|x|) / 2.
template <Real T>
BUROPT_INLINE T cosh(T x) noexcept {
  const T magnitude = min(T(detail::ExpConstants<Scalar<T>>::kHalfOverflow), abs(x));
  const auto [scale, fraction, unused] = detail::expm1_parts<2>(magnitude);
  const T quarter = fma(scale, fraction, scale);  // e^|x| / 4
  const T y = fma(T(2), quarter, T(0.125f) / quarter);
  return select(isnan(x), x, y);
}

}  // namespace buropt
