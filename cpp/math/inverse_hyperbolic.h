// arcsinh, arccosh, arctanh, each as a log1p whose argument does not cancel.
#pragma once

#include "base/simd.h"
#include "math/log.h"

namespace buropt {
namespace detail {

// log(1 + x), or log(2 x) where `doubled` is set: there 1 is no more than a rounding of x.
template <Real T>
BUROPT_INLINE T log1p_or_log_of_double(T x, MaskOf<T> doubled) noexcept {
  using C = LogConstants<Scalar<T>>;
  return log1p(x) + select(doubled, T(C::kLn2High + C::kLn2Low), T(0));
}

// From here up sqrt(x^2 +- 1) is x.
template <Real T>
inline constexpr Scalar<T> kLargeForSquare =
    sizeof(Scalar<T>) == 8 ? Scalar<T>(0x1p54f) : Scalar<T>(0x1p26f);

}  // namespace detail

// log(x + sqrt(x^2 + 1)), with sqrt(x^2 + 1) = 1 + x^2 / (1 + sqrt(x^2 + 1)).
template <Real T>
BUROPT_INLINE T arcsinh(T x) noexcept {
  const T size = abs(x);
  const MaskOf<T> large = size > T(detail::kLargeForSquare<T>);
  const T square = select(large, T(0), rounded_product(size, size));
  const T above_one = size + square / (T(1) + sqrt(T(1) + square));
  return copysign(detail::log1p_or_log_of_double(select(large, size, above_one), large), x);
}

// log(x + sqrt(x^2 - 1)) with t = x - 1: x^2 - 1 = t (t + 2).
template <Real T>
BUROPT_INLINE T arccosh(T x) noexcept {
  const MaskOf<T> large = x > T(detail::kLargeForSquare<T>);
  const T t = select(large, T(0), x - T(1));
  const T above_one = t + sqrt(t * (t + T(2)));
  const T y = detail::log1p_or_log_of_double(select(large, x, above_one), large);
  return select(x < T(1), T(kNaN<T>), y);
}

// log((1 + x) / (1 - x)) / 2.
template <Real T>
BUROPT_INLINE T arctanh(T x) noexcept {
  const T size = abs(x);
  return copysign(T(0.5f) * log1p((size + size) / (T(1) - size)), x);
}

}  // namespace buropt
