// hypot.
#pragma once

#include "base/simd.h"

namespace buropt {
namespace detail {

// Powers of two that bring the squares of any two numbers into range.
template <class S>
struct HypotConstants;

template <>
struct HypotConstants<double> {
  static constexpr double kLarge = 0x1p500, kShrink = 0x1p-600;
  static constexpr double kSmall = 0x1p-400, kGrow = 0x1p600;
};

template <>
struct HypotConstants<float> {
  static constexpr float kLarge = 0x1p60f, kShrink = 0x1p-70f;
  static constexpr float kSmall = 0x1p-40f, kGrow = 0x1p100f;
};

}  // namespace detail

// sqrt(x^2 + y^2); infinite if either operand is, also beside a NaN.
template <Real T>
BUROPT_INLINE T hypot(T x, T y) noexcept {
  using C = detail::HypotConstants<Scalar<T>>;
  const T size = max(abs(x), abs(y));
  const MaskOf<T> large = size > T(C::kLarge), small = size < T(C::kSmall);
  const T scale = select(large, T(C::kShrink), select(small, T(C::kGrow), T(1)));
  const T back = select(large, T(1 / C::kShrink), select(small, T(1 / C::kGrow), T(1)));
  const T a = x * scale, b = y * scale;
  const T length = sqrt(fma(a, a, rounded_product(b, b))) * back;
  const MaskOf<T> endless_x = abs(x) == T(kInfinity<T>), endless_y = abs(y) == T(kInfinity<T>);
  return select(endless_x | endless_y, T(kInfinity<T>), length);
}

}  // namespace buropt
