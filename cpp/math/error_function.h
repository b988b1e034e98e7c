// erf, erfc, the normal distribution function, and functions that belong to them.
//
// erf x = x (2 / sqrt(pi) + z P(z)), z = x^2, for small x. For larger ones erfc x is
// e^(-x^2) / (x + 1/2) times a polynomial in (x - k) / (x + k), which is nearly constant.
#pragma once

#include "base/simd.h"
#include "math/by_lane.h"
#include "math/double_word.h"
#include "math/exp.h"
#include "math/polynomial.h"

namespace buropt {
namespace detail {

template <class S>
struct ErrorFunctionConstants;

template <>
struct ErrorFunctionConstants<double> {
  static constexpr double kTwoOverSqrtPi = 0x1.20dd750429b6dp+0;
  static constexpr double kTwoOverSqrtPiLow = 0x1.1ae3a914fed80p-56;
  static constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
  static constexpr double kLargest = 28;  // erfc is 0 from here on
  static constexpr double kCenter = 4;
  // |x| <= 1: 2^-62.7 relative to erf.
  static constexpr double kErf[] = {
      -0x1.812746b0379e6p-2,  0x1.ce2f21a042b45p-4,  -0x1.b82ce312851c9p-6,  0x1.565bcd0dc0838p-8,
      -0x1.c02db3db71809p-11, 0x1.f9a321e1ee8d4p-14, -0x1.f4d1e39ab781bp-17, 0x1.b9df24f1a8d91p-20,
      -0x1.5f1ec8922c543p-23, 0x1.f7b3cbdcc5664p-27, -0x1.3898556193299p-30, 0x1.05edf3e0fc4a8p-34};
  // 1/2 <= x: 2^-60.5 relative to erfc.
  static constexpr double kErfc[] = {
      0x1.3ba5916e9fd7fp-1,   -0x1.1df1ad154a28ep-4,  0x1.f7f5df66fd75dp-8,
      0x1.16ecefcfa52c4p-5,   -0x1.9ddb23c3e8d7bp-5,  0x1.7fee004e14a09p-5,
      -0x1.0fb06dfe4f35bp-5,  0x1.3079edf62353cp-6,   -0x1.09623883bdc99p-7,
      0x1.49c672a88c8cep-9,   -0x1.8d4a9b47958c4p-12, -0x1.a1df43b9f0f85p-14,
      0x1.3be0592f5eb28p-14,  -0x1.9954fbd48d7a8p-17, -0x1.788a427a43dd5p-18,
      0x1.7ef5ff96e5406p-19,  0x1.3af96ed30cc33p-23,  -0x1.b805abee8ebebp-22,
      0x1.42ac376b62df3p-25,  0x1.bbd0887d65680p-25,  -0x1.38b39b4a1f8c3p-27,
      -0x1.4c8cbc8c820f8p-28, 0x1.05f931611cc3ap-30};
};

template <>
struct ErrorFunctionConstants<float> {
  static constexpr float kTwoOverSqrtPi = 0x1.20dd76p+0f;
  static constexpr float kTwoOverSqrtPiLow = -0x1.f7ac92p-25f;
  static constexpr float kSqrtHalf = 0x1.6a09e6p-1f;
  static constexpr float kLargest = 10.1f;
  static constexpr float kCenter = 2.5f;
  // 2^-29.5 and 2^-31.
  static constexpr float kErf[] = {-0x1.81274p-2f, 0x1.ce2d4ep-4f,   -0x1.b7fdb4p-6f,
                                   0x1.5424a6p-8f, -0x1.a4bc64p-11f, 0x1.4b4e2ap-14f};
  static constexpr float kErfc[] = {0x1.43cc7p-1f,   -0x1.f52c6p-5f,  -0x1.959ab6p-5f,
                                    0x1.42d3b8p-4f,  -0x1.a5c1fp-5f,  0x1.0c52d2p-6f,
                                    0x1.ed5928p-12f, -0x1.1c9f58p-9f, 0x1.e36cdap-13f,
                                    0x1.142f32p-12f, -0x1.9f9c76p-16f};
};

// erf x for |x| <= 1.
template <Real T>
BUROPT_INLINE T small_erf(T x) noexcept {
  using C = ErrorFunctionConstants<Scalar<T>>;
  const T z = x * x;
  const T rest = fma(z, polynomial(z, C::kErf), T(C::kTwoOverSqrtPiLow));
  return fma(x, T(C::kTwoOverSqrtPi), rounded_product(x, rest));
}

// e^(x^2) erfc x for 1/2 <= x <= kLargest, the quotient in two words.
template <Real T>
BUROPT_INLINE DoubleWord<T> scaled_erfc(T x) noexcept {
  using C = ErrorFunctionConstants<Scalar<T>>;
  const T t = (x - T(C::kCenter)) / (x + T(C::kCenter));
  const T numerator = polynomial(t, C::kErfc);
  const T denominator = x + T(0.5f);
  const T lost = T(0.5f) - (denominator - x);
  const T reciprocal = T(1) / denominator;
  const T quotient = numerator * reciprocal;
  const auto [back, error] = product(quotient, denominator);
  const T missing = fma(-quotient, lost, (numerator - back) - error);
  return {quotient, missing * reciprocal};
}

// erfc x for 1/2 <= x <= kLargest, where the square of x is given in two words.
template <Real T>
BUROPT_INLINE T large_erfc(T x, DoubleWord<T> square) noexcept {
  const auto [e, e_error] = exp_of_difference(-square.high, square.low);
  const auto [scaled, scaled_error] = scaled_erfc(x);
  return fma(e, scaled, fma(e, scaled_error, rounded_product(e_error, scaled)));
}

}  // namespace detail

template <Real T>
BUROPT_INLINE T erf(T x) noexcept {
  using C = detail::ErrorFunctionConstants<Scalar<T>>;
  const T size = abs(x);
  const T large = max(T(1), min(T(C::kLargest), size));
  const T y = T(1) - detail::large_erfc(large, detail::product(large, large));
  return copysign(select(size > T(1), y, detail::small_erf(size)), x);  // a NaN is not larger
}

template <Real T>
BUROPT_INLINE T erfc(T x) noexcept {
  using C = detail::ErrorFunctionConstants<Scalar<T>>;
  const T size = abs(x);
  const T large = max(T(0.5f), min(T(C::kLargest), size));
  const T tail = detail::large_erfc(large, detail::product(large, large));
  return select(size > T(0.5f), select(x < T(0), T(2) - tail, tail), T(1) - detail::small_erf(x));
}

// (1 + erf(x / sqrt 2)) / 2. The exponent is formed from x itself, so the tail is as good as that
// of erfc.
template <Real T>
BUROPT_INLINE T ndtr(T x) noexcept {
  using C = detail::ErrorFunctionConstants<Scalar<T>>;
  constexpr Scalar<T> kLargest = C::kLargest / C::kSqrtHalf;
  const T size = min(T(kLargest), abs(x));
  const T scaled = size * T(C::kSqrtHalf);
  const auto [square, square_error] = detail::product(size, size);
  const T large = max(T(0.5f), scaled);
  const T tail = T(0.5f) * detail::large_erfc(large, {T(0.5f) * square, T(0.5f) * square_error});
  const T y = select(x < T(0), tail, T(1) - tail);
  const T middle = fma(T(0.5f), detail::small_erf(copysign(scaled, x)), T(0.5f));
  return select(scaled > T(0.5f), y, middle);
}

namespace detail {

// One number at a time; see error_function.cpp.
double erfcx(double x, int n) noexcept;
double log_ndtr(double x) noexcept;
double erfinv(double x) noexcept;
double erfcinv(double x) noexcept;
double ndtri(double x) noexcept;

}  // namespace detail

// e^(x^2) times the n-th repeated integral of erfc, n >= 0.
template <Real T>
BUROPT_INLINE T erfcx(T x, int n) noexcept {
  return by_lane([n](double lane) noexcept { return detail::erfcx(lane, n); }, x);
}
// log ndtr(x).
template <Real T>
BUROPT_INLINE T log_ndtr(T x) noexcept {
  return by_lane(detail::log_ndtr, x);
}
// The inverse functions of erf, erfc and ndtr.
template <Real T>
BUROPT_INLINE T erfinv(T x) noexcept {
  return by_lane(detail::erfinv, x);
}
template <Real T>
BUROPT_INLINE T erfcinv(T x) noexcept {
  return by_lane(detail::erfcinv, x);
}
template <Real T>
BUROPT_INLINE T ndtri(T x) noexcept {
  return by_lane(detail::ndtri, x);
}

}  // namespace buropt
