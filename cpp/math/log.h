// log, log2, log10 and log1p.
//
// x = 2^k m with m in [sqrt(1/2), sqrt(2)), f = m - 1, and log x = k ln 2 + log(1 + f).
// f is exact, so relative accuracy survives around x = 1.
#pragma once

#include "base/simd.h"
#include "math/polynomial.h"

namespace buropt {
namespace detail {

template <class S>
struct LogConstants;

template <>
struct LogConstants<double> {
  static constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
  static constexpr double kMinNormal = 0x1p-1022;
  static constexpr int kSubnormalShift = 54;
  static constexpr double kLn2High = 0x1.62e42fefa3p-1;  // 41 bits: exact times any k
  static constexpr double kLn2Low = 0x1.3de6af278ece6p-42;
  static constexpr double kLog10Of2High = 0x1.34413509f7p-2;  // 41 bits too
  static constexpr double kLog10Of2Low = 0x1.3fde623e2566bp-43;
  static constexpr double kInverseLn2 = 0x1.71547652b82fep+0;
  static constexpr double kInverseLn10 = 0x1.bcb7b1526e50ep-2;
  // L of log(1 + f) = 2 s + s z L(z) = f - s (f - z L(z)) with s = f / (2 + f), z = s^2;
  // 2^-59.5 relative to the logarithm.
  static constexpr double kTail[] = {
      0x1.5555555555593p-1, 0x1.999999997fa59p-2, 0x1.2492494220ba3p-2, 0x1.c71c51e23b625p-3,
      0x1.74664719f71d4p-3, 0x1.39a0e1f169094p-3, 0x1.2f0e2884758e2p-3};
};

template <>
struct LogConstants<float> {
  static constexpr float kSqrtHalf = 0x1.6a09e6p-1f;
  static constexpr float kMinNormal = 0x1p-126f;
  static constexpr int kSubnormalShift = 25;
  static constexpr float kLn2High = 0x1.62e4p-1f;  // 15 bits
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kLog10Of2High = 0x1.344p-2f;  // 15 bits too
  static constexpr float kLog10Of2Low = 0x1.3509f8p-18f;
  static constexpr float kInverseLn2 = 0x1.715476p+0f;
  static constexpr float kInverseLn10 = 0x1.bcb7b2p-2f;
  // P of log(1 + f) = f - f^2 / 2 + f^3 P(f); 2^-30.2.
  static constexpr float kTail[] = {0x1.555546p-2f,  -0x1.000000p-2f, 0x1.99a554p-3f,
                                    -0x1.555f02p-3f, 0x1.232ddcp-3f,  -0x1.fbc288p-4f,
                                    0x1.e71e06p-4f,  -0x1.e05fbep-4f, 0x1.166f5ep-4f};
};

template <Real T>
struct LogArgument {
  T k;
  T f;
  T counter;  // kUnit + k + the exponent bias: its low bits are the biased exponent 2^k has
};

// Splits a positive normal x. Other x give some finite k and f.
template <Real T>
BUROPT_INLINE LogArgument<T> split_for_log(T x, T bias = T(Format<T>::kBias)) noexcept {
  using F = Format<T>;
  using Bits = UIntOf<T>;
  const Bits sqrt_half = bits(T(LogConstants<Scalar<T>>::kSqrtHalf));
  // Adding the distance from sqrt(1/2) to 1 carries into the exponent exactly when m should halve.
  const Bits shifted = bits(x) + (bits(T(1)) - sqrt_half);
  const Bits mantissa = shifted & Bits((typename F::Bits{1} << F::kMantissaBits) - 1);
  const T counter = from_bits<T>((shifted >> F::kMantissaBits) | bits(T(F::kUnit)));
  return {counter - (T(F::kUnit) + bias), from_bits<T>(mantissa + sqrt_half) - T(1), counter};
}

// The same for every positive finite x.
template <Real T>
BUROPT_INLINE LogArgument<T> split_subnormal_for_log(T x) noexcept {
  using C = LogConstants<Scalar<T>>;
  constexpr Scalar<T> kBias = Format<T>::kBias;
  constexpr Scalar<T> kScale = Scalar<T>(std::int64_t{1} << C::kSubnormalShift);
  const MaskOf<T> subnormal = x < T(C::kMinNormal);
  return split_for_log(select(subnormal, x * T(kScale), x),
                       select(subnormal, T(kBias + C::kSubnormalShift), T(kBias)));
}

// log(1 + f) - f + small, for f of split_for_log.
template <Real T>
BUROPT_INLINE T log_curve(T f, T small) noexcept {
  using C = LogConstants<Scalar<T>>;
  if constexpr (sizeof(Scalar<T>) == sizeof(double)) {
    const T s = f / (f + T(2));
    const T z = s * s;
    return fma(-s, fma(-z, polynomial(z, C::kTail), f), small);
  } else {
    return fma(f * f, fma(f, polynomial(f, C::kTail), T(-0.5f)), small);
  }
}

// k ln 2 + log(1 + f) + error, for |error| of a rounding of f.
template <Real T>
BUROPT_INLINE T log_sum(T k, T f, T error) noexcept {
  using C = LogConstants<Scalar<T>>;
  const T small = fma(k, T(C::kLn2Low), error);
  return fma(k, T(C::kLn2High), f + log_curve(f, small));
}

// y where log x is a finite number, else what a logarithm has at the borders and outside.
template <Real T>
BUROPT_INLINE T log_or_border(T x, T y) noexcept {
  const T at_most_zero = select(x == T(0), T(-kInfinity<T>), T(kNaN<T>));
  return select(x > T(0), select(x < T(kInfinity<T>), y, x), at_most_zero);
}

// log(1 + x) for finite x > -1.
template <Real T>
BUROPT_INLINE T log1p_finite(T x) noexcept {
  using F = Format<T>;
  const T larger = max(T(1), x);
  const T smaller = min(T(1), x);
  const T u = larger + smaller;
  const T lost = smaller - (u - larger);  // 1 + x = u + lost exactly
  const auto [k, f, counter] = split_for_log(u);
  // 2^-k, or 0 for the largest k, where `lost` no longer counts.
  const T end = T(F::kUnit + 2 * F::kBias);
  const T scale = from_bits<T>((bits(end) - bits(min(counter, end))) << F::kMantissaBits);
  const T corrected = fma(lost, scale, f);  // x itself when k = 0
  return log_sum(k, corrected, fma(lost, scale, f - corrected));
}

// log(1 + x + error) for x in [0, 1], where only k = 0 and k = 1 occur, and a rounding error of x.
template <Real T>
BUROPT_INLINE T log1p_unit(T x, T error) noexcept {
  const MaskOf<T> halve = x > T(LogConstants<Scalar<T>>::kSqrtHalf * 2 - 1);
  const T halved = fma(T(0.5f), x, T(-0.5f));  // (1 + x) / 2 - 1
  const T halved_error = fma(T(0.5f), x, -(halved + T(0.5f)));
  return log_sum(select(halve, T(1), T(0)), select(halve, halved, x),
                 select(halve, fma(T(0.5f), error, halved_error), error));
}

}  // namespace detail

template <Real T>
BUROPT_INLINE T log(T x) noexcept {
  const auto [k, f, unused] = detail::split_subnormal_for_log(x);
  return detail::log_or_border(x, detail::log_sum(k, f, T(0)));
}

// k + log(1 + f) / ln 2: exact for powers of two.
template <Real T>
BUROPT_INLINE T log2(T x) noexcept {
  using C = detail::LogConstants<Scalar<T>>;
  const auto [k, f, unused] = detail::split_subnormal_for_log(x);
  const T fraction = f + detail::log_curve(f, T(0));
  return detail::log_or_border(x, fma(fraction, T(C::kInverseLn2), k));
}

// k log10(2) + log(1 + f) / ln 10: exact for powers of ten.
template <Real T>
BUROPT_INLINE T log10(T x) noexcept {
  using C = detail::LogConstants<Scalar<T>>;
  const auto [k, f, unused] = detail::split_subnormal_for_log(x);
  const T fraction = f + detail::log_curve(f, T(0));
  const T small = fma(fraction, T(C::kInverseLn10), rounded_product(k, T(C::kLog10Of2Low)));
  return detail::log_or_border(x, fma(k, T(C::kLog10Of2High), small));
}

template <Real T>
BUROPT_INLINE T log1p(T x) noexcept {
  const T y = detail::log1p_finite(x);
  const T at_most_pole = select(x == T(-1), T(-kInfinity<T>), T(kNaN<T>));
  const T above_pole = select((x < T(kInfinity<T>)) & (x != T(0)), y, x);
  return select(x > T(-1), above_pole, at_most_pole);
}

}  // namespace buropt
