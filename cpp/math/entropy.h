// Products with logarithms: xlogy, xlog1py, entr, rel_entr, kl_div.
#pragma once

#include "base/simd.h"
#include "math/double_word.h"
#include "math/log.h"
#include "math/polynomial.h"
#include "math/power.h"

namespace buropt {

// a log(b) and a log(1 + b), 0 for a = 0 unless b is NaN.
template <Real T>
BUROPT_INLINE T xlogy(T a, T b) noexcept {
  return select((a == T(0)) & (b == b), T(0), a * log(b));
}
template <Real T>
BUROPT_INLINE T xlog1py(T a, T b) noexcept {
  return select((a == T(0)) & (b == b), T(0), a * log1p(b));
}

// -x log(x), 0 at 0, and -inf below.
template <Real T>
BUROPT_INLINE T entr(T x) noexcept {
  const T below = select(x < T(0), T(-kInfinity<T>), x);
  return select(x > T(0), -(x * log(x)), select(x == T(0), T(0), below));
}

namespace detail {

// log(a / b) for positive a and b. Close numbers have an exact difference.
template <Real T>
BUROPT_INLINE T log_of_ratio(T a, T b) noexcept {
  const T ratio = a / b;
  const MaskOf<T> close = (ratio > T(0.5f)) & (ratio < T(2));
  const MaskOf<T> plain =
      (ratio > T(LogConstants<Scalar<T>>::kMinNormal)) & (ratio < T(kInfinity<T>));
  const T y = log(select(plain, ratio, a));
  return select(close, log1p((a - b) / b), select(plain, y, y - log(b)));
}

// What a divergence is outside of a > 0 and b > 0.
template <Real T>
BUROPT_INLINE T outside_divergence(T a, T b, T at_zero) noexcept {
  const MaskOf<T> allowed = (a == T(0)) & (b >= T(0));
  return select(isnan(a), a, select(isnan(b), b, select(allowed, at_zero, T(kInfinity<T>))));
}

}  // namespace detail

// a log(a / b); 0 for a = 0 <= b, infinite where a or b is out of range.
template <Real T>
BUROPT_INLINE T rel_entr(T a, T b) noexcept {
  const T y = a * detail::log_of_ratio(a, b);
  return select((a > T(0)) & (b > T(0)), y, detail::outside_divergence(a, b, T(0)));
}

// a log(a / b) - a + b. For close numbers it is, with s = (a - b) / (a + b),
// (a - b) s + 2 a (s^3 / 3 + s^5 / 5 + ...): nothing cancels.
template <Real T>
BUROPT_INLINE T kl_div(T a, T b) noexcept {
  static constexpr Scalar<T> kSeries[] = {
      Scalar<T>(1.0 / 3),  Scalar<T>(1.0 / 5),  Scalar<T>(1.0 / 7),  Scalar<T>(1.0 / 9),
      Scalar<T>(1.0 / 11), Scalar<T>(1.0 / 13), Scalar<T>(1.0 / 15), Scalar<T>(1.0 / 17),
      Scalar<T>(1.0 / 19), Scalar<T>(1.0 / 21), Scalar<T>(1.0 / 23), Scalar<T>(1.0 / 25),
      Scalar<T>(1.0 / 27), Scalar<T>(1.0 / 29), Scalar<T>(1.0 / 31), Scalar<T>(1.0 / 33),
      Scalar<T>(1.0 / 35), Scalar<T>(1.0 / 37)};
  // Halves, because the sum might overflow.
  const T distance = a - b;
  const T s = T(0.5f) * distance / fma(T(0.5f), a, T(0.5f) * b);
  const T z = s * s;
  const T series = (z * s) * detail::polynomial(z, kSeries);
  const T small = fma(distance, s, rounded_product(a + a, series));
  // For others the logarithm of the rounded quotient and what rounding took, in two words.
  const T ratio = a / b;
  const auto [back, back_error] = detail::product(ratio, b);
  const auto [log, log_error] = detail::log_in_two_words(ratio);
  const auto [main, main_error] = detail::product(a, log);
  const auto [far, far_error] = detail::difference(main, distance);
  const T low = fma(a, log_error, (a - back) - back_error) + main_error + far_error;
  const T exact = far + low;
  // Beyond the range of the quotient nothing cancels.
  const T apart = select(exact == exact, exact, fma(a, detail::log_of_ratio(a, b), -distance));
  const T y = select(abs(s) < T(0.34f), small, apart);
  return select((a > T(0)) & (b > T(0)), y, detail::outside_divergence(a, b, b));
}

}  // namespace buropt
