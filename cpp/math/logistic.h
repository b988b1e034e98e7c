// The logistic family: expit and its integral in both usual forms, without overflow or
// cancellation.
#pragma once

#include "base/simd.h"
#include "math/double_word.h"
#include "math/exp.h"
#include "math/log.h"

namespace buropt {

// 1 / (1 + e^-x). Only e^-|x| is formed, so the lower tail keeps its relative accuracy down to the
// smallest subnormal.
template <Real T>
BUROPT_INLINE T expit(T x) noexcept {
  const T below = from_bits<T>(bits(x) | UIntOf<T>(Format<T>::kSignBit));  // -|x|
  const T e = exp_of_nonpositive(below);
  const T y = e / (T(1) + e);
  // Puts the roundings of 1 + e and of the quotient back: e - y is exact, and 1 - y the derivative.
  // Where e^2 would be lost beside e its product is left out, as it may be subnormal, and slow.
  const T factor = select(below < T(-60), T(0), y);
  const T lower = fma(fma(-factor, e, e - y), T(1) - y, y);
  return select(x < T(0), lower, T(1) - lower);
}

// log(1 + e^x).
template <Real T>
BUROPT_INLINE T softplus(T x) noexcept {
  const auto [e, e_error] = detail::exp_of_difference(-abs(x), T(0));
  return max(T(0), x) + detail::log1p_unit(e, e_error);
}

namespace detail {

// |a - b| as high + low; `low` is 0 where it would not be a number.
template <Real T>
BUROPT_INLINE DoubleWord<T> distance(T a, T b) noexcept {
  const auto [rounded, error] = difference(a, b);
  const T lost = from_bits<T>(bits(error) ^ sign_bit(rounded));
  // Equal arguments have distance 0 also when they are infinite.
  return {select(a == b, T(0), abs(rounded)), select(abs(lost) < T(1), lost, T(0))};
}

}  // namespace detail

// log(e^a + e^b) = max(a, b) + log(1 + e^-|a - b|). For max(a, b) < 0 the two terms may cancel; the
// error is then 2 units in the last place of the larger term, not of the result.
template <Real T>
BUROPT_INLINE T logaddexp(T a, T b) noexcept {
  const auto [high, low] = detail::distance(a, b);
  const auto [e, e_error] = detail::exp_of_difference(-high, low);
  return max(a, b) + detail::log1p_unit(e, e_error);
}

// log2(2^a + 2^b).
template <Real T>
BUROPT_INLINE T logaddexp2(T a, T b) noexcept {
  using C = detail::LogConstants<Scalar<T>>;
  const auto [high, low] = detail::distance(a, b);
  const T e = exp2(-high);
  const T smaller = detail::log1p_unit(e, rounded_product(e * low, T(-C::kLn2High)));
  return max(a, b) + rounded_product(smaller, T(C::kInverseLn2));  // log2 of 1/2 + 1/2 is 0
}

// log(x / (1 - x)), near 1/2 as log(1 + (2 x - 1) / (1 - x)).
template <Real T>
BUROPT_INLINE T logit(T x) noexcept {
  const T rest = T(1) - x;
  const MaskOf<T> middle = (x > T(0.25f)) & (x < T(0.75f));
  const T y = log1p(select(middle, fma(T(2), x, T(-1)), T(0)) / rest);
  return select(middle, y, log(x / rest));
}

}  // namespace buropt
