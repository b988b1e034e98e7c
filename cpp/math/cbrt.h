// cbrt.
//
// |x| = 8^q z with z in [sqrt(1/8), sqrt(8)); a polynomial gives the root of z to 9 bits, and two
// steps of Halley's method triple the bits each time.
#pragma once

#include "base/simd.h"
#include "math/double_word.h"
#include "math/log.h"
#include "math/polynomial.h"

namespace buropt {

template <Real T>
BUROPT_INLINE T cbrt(T x) noexcept {
  using Bits = UIntOf<T>;
  static constexpr Scalar<T> kRoot[] = {Scalar<T>(0x1.c635aep-2), Scalar<T>(0x1.cbf964p-1),
                                        Scalar<T>(-0x1.e5468cp-2), Scalar<T>(0x1.3a0a48p-3),
                                        Scalar<T>(-0x1.406116p-6)};
  const auto [k, f, unused] = detail::split_subnormal_for_log(abs(x));
  const auto [q, q_bits] = nearest_int(k, T(Scalar<T>(1) / 3));
  const T left = k - T(3) * q;  // -1, 0 or 1
  const T m = f + T(1);
  const T z = select(left == T(0), m, select(left > T(0), m + m, T(0.5f) * m));
  const T rough = detail::polynomial(z, kRoot);
  const T cube = rounded_product(rough * rough, rough);
  const T y = fma(rough, (z - cube) / fma(T(2), cube, z), rough);
  // The second step from the exact error of y.
  const auto [square, square_error] = detail::product(y, y);
  const auto [high, error] = detail::product(square, y);
  const T missing = (z - high) - fma(square_error, y, error);
  const T root = fma(y, missing / fma(T(2), high, z), y);
  const T scale = from_bits<T>((q_bits + Bits(Format<T>::kBias)) << Format<T>::kMantissaBits);
  const MaskOf<T> finite = (x != T(0)) & (abs(x) < T(kInfinity<T>));
  return select(finite, copysign(root * scale, x), x);
}

}  // namespace buropt
