// arctan and what follows from it: arctan2, arcsin, arccos.
//
// arctan t = t + t^3 P(t^2) for 0 <= t <= 1; a larger argument is the complement of its reciprocal.
#pragma once

#include "base/simd.h"
#include "math/double_word.h"
#include "math/polynomial.h"

namespace buropt {
namespace detail {

template <class S>
struct ArctanConstants;

template <>
struct ArctanConstants<double> {
  static constexpr double kHalfPi = 0x1.921fb54442d18p+0;
  static constexpr double kHalfPiLow = 0x1.1a62633145c07p-54;
  // 2^-57.5 relative to the arctangent.
  static constexpr double kTail[] = {
      -0x1.5555555555526p-2, 0x1.999999999554ep-3,  -0x1.249249237e3b0p-3,  0x1.c71c717f99ae1p-4,
      -0x1.745d11ab493aep-4, 0x1.3b136679b7be9p-4,  -0x1.110e50398e966p-4,  0x1.e1bb9c5e710d6p-5,
      -0x1.ae5e496903bd1p-5, 0x1.82da547c58a2ep-5,  -0x1.59a2bb1b3920dp-5,  0x1.2c2be9a1c3774p-5,
      -0x1.e9f2a040e212bp-6, 0x1.683403c35194cp-6,  -0x1.c77fd761209b3p-7,  0x1.d7a33d502b1f9p-8,
      -0x1.7a23a73dee1e0p-9, 0x1.b3dc8aa767235p-11, -0x1.3f1caa4db910fp-13, 0x1.bbc55d1c321f8p-17};
};

template <>
struct ArctanConstants<float> {
  static constexpr float kHalfPi = 0x1.921fb6p+0f;
  static constexpr float kHalfPiLow = -0x1.777a5cp-25f;
  // 2^-28.5.
  static constexpr float kTail[] = {-0x1.55553ep-2f, 0x1.9991fep-3f,  -0x1.2421b8p-3f,
                                    0x1.c09a14p-4f,  -0x1.5834cep-4f, 0x1.dacaa6p-5f,
                                    -0x1.fed2cep-6f, 0x1.65a7d2p-7f,  -0x1.d6327p-10f};
};

// arctan(y / x) for x, y >= 0, not both infinite and not both 0: the angle in [0, pi/2].
template <Real T>
BUROPT_INLINE T first_quadrant_angle(T y, T x) noexcept {
  using C = ArctanConstants<Scalar<T>>;
  const MaskOf<T> steep = y > x;
  const T t = select(steep, x, y) / select(steep, y, x);
  const T z = t * t;
  const T curve = rounded_product(z * t, polynomial(z, C::kTail));
  return select(steep, T(C::kHalfPi) - (t + (curve - T(C::kHalfPiLow))), t + curve);
}

}  // namespace detail

template <Real T>
BUROPT_INLINE T arctan(T x) noexcept {
  return copysign(detail::first_quadrant_angle(abs(x), T(1)), x);
}

// The angle of the point (x, y). Signs of zeros count, and two infinities are as good as two ones.
template <Real T>
BUROPT_INLINE T arctan2(T y, T x) noexcept {
  using C = detail::ArctanConstants<Scalar<T>>;
  const T size = abs(x);
  const MaskOf<T> equal = abs(y) == size;
  const MaskOf<T> zero = equal & (size == T(0));
  const T angle = detail::first_quadrant_angle(select(equal, select(zero, T(0), T(1)), abs(y)),
                                               select(equal, T(1), size));
  const MaskOf<T> left = copysign(T(1), x) < T(0);
  const T turned = T(2 * C::kHalfPi) - (angle - T(2 * C::kHalfPiLow));
  return select(isnan(x), x, select(isnan(y), y, copysign(select(left, turned, angle), y)));
}

namespace detail {

// sqrt(1 - x^2), NaN for |x| > 1; the square in two words, because the difference may cancel.
template <Real T>
BUROPT_INLINE T circle_height(T x) noexcept {
  const DoubleWord<T> square = product(x, x);
  return sqrt((T(1) - square.high) - square.low);
}

}  // namespace detail

template <Real T>
BUROPT_INLINE T arcsin(T x) noexcept {
  return arctan2(x, detail::circle_height(x));
}

template <Real T>
BUROPT_INLINE T arccos(T x) noexcept {
  return arctan2(detail::circle_height(x), x);
}

}  // namespace buropt
