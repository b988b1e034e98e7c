// pow for any real exponent and powi for an integer one.
#pragma once

#include <bit>

#include "base/simd.h"
#include "math/double_word.h"
#include "math/exp.h"
#include "math/log.h"
#include "math/polynomial.h"

namespace buropt {
namespace detail {

// log((1 + s) / (1 - s)) / 2 = s + s z (1/3 + z P(z)), z = s^2.
template <class S>
struct PowConstants;

template <>
struct PowConstants<double> {
  static constexpr double kThirdHigh = 0x1.5555555555555p-2;
  static constexpr double kThirdLow = 0x1.5555555555555p-56;
  // 2^-66 relative to the logarithm.
  static constexpr double kTail[] = {
      0x1.9999999999b33p-3, 0x1.24924924577a9p-3, 0x1.c71c722de91bcp-4, 0x1.745ce9b5624adp-4,
      0x1.3b1ef48cbae1ep-4, 0x1.0f7f1e27b4c59p-4, 0x1.0e4a3cde4ec35p-4};
};

template <>
struct PowConstants<float> {
  static constexpr float kThirdHigh = 0x1.555556p-2f;
  static constexpr float kThirdLow = -0x1.555556p-27f;
  static constexpr float kTail[] = {0x1.999ap-3f, 0x1.24527ap-3f, 0x1.dfa3p-4f};  // 2^-36
};

// log x for x > 0 (also infinite or NaN), accurate enough for x^y = e^(y log x): the exponent may
// be as large as 745 and its absolute error is the result's relative error.
template <Real T>
BUROPT_INLINE DoubleWord<T> log_in_two_words(T x) noexcept {
  using C = PowConstants<Scalar<T>>;
  using L = LogConstants<Scalar<T>>;
  const auto [k, f, unused] = split_subnormal_for_log(x);

  // s = f / (2 + f) by a reciprocal and one correction.
  const T denominator = f + T(2);
  const T denominator_error = f - (denominator - T(2));
  const T reciprocal = T(1) / denominator;
  const T quotient = f * reciprocal;
  const auto [back, back_error] = product(quotient, denominator);
  const T remainder = fma(-quotient, denominator_error, (f - back) - back_error);
  const DoubleWord<T> s = {quotient, remainder * reciprocal};

  const DoubleWord<T> z = square(s);
  const T tail = rounded_product(z.high, polynomial(z.high, C::kTail));
  const DoubleWord<T> third = ordered_sum(T(C::kThirdHigh), tail);
  const DoubleWord<T> series = {third.high, third.low + T(C::kThirdLow)};
  const DoubleWord<T> correction = s * (z * series);
  const DoubleWord<T> half = ordered_sum(s.high, correction.high);
  const T half_low = half.low + (s.low + correction.low);

  const DoubleWord<T> sum = ordered_sum(k * T(L::kLn2High), T(2) * half.high);
  const T low = fma(k, T(L::kLn2Low), fma(T(2), half_low, sum.low));
  const DoubleWord<T> log = ordered_sum(sum.high, low);

  const T high = select(x == T(0), T(-kInfinity<T>), select(x < T(kInfinity<T>), log.high, x));
  return {high, log.low};
}

// x^(y + y_low) for x >= 0.
template <Real T>
BUROPT_INLINE T power_of_magnitude(T x, T y, T y_low) noexcept {
  const DoubleWord<T> log = log_in_two_words(x);
  const auto [high, error] = product(y, log.high);
  const T low = fma(y_low, log.high, fma(y, log.low, error));
  // Beyond any finite result the low part is no longer small, or not even a number.
  return exp_of_difference(high, select(abs(high) < T(1024), -low, T(0))).high;
}

}  // namespace detail

// x^y with the special values of IEEE 754: NaN for a negative finite x and a fractional y, 1 for
// y = 0 or x = 1 whatever the other is, signed zeros and infinities by the parity of y.
template <Real T>
BUROPT_INLINE T pow(T x, T y) noexcept {
  using Bits = UIntOf<T>;
  const T magnitude = abs(x);

  T result = detail::power_of_magnitude(magnitude, y, T(0));
  result = select((magnitude == T(1)) & (y == y), T(1), result);

  // |y| + kUnit has the parity of an integer |y| in its lowest bit; beyond kUnit |y| itself has,
  // and from 2 kUnit on every number is even.
  const T size = abs(y);
  const MaskOf<T> below_unit = size < T(Format<T>::kUnit);
  const T rounded = size + T(Format<T>::kUnit);
  const MaskOf<T> fractional = below_unit & (rounded - T(Format<T>::kUnit) != size);
  const MaskOf<T> even = (size >= T(2 * Format<T>::kUnit)) | fractional;
  const Bits parity = select(even, Bits(0), bits(select(below_unit, rounded, size)) & Bits(1));
  constexpr int kTopBit = 8 * static_cast<int>(sizeof(Scalar<T>)) - 1;
  result = from_bits<T>(bits(result) ^ (sign_bit(x) & (parity << kTopBit)));

  const MaskOf<T> finite_negative = (x < T(0)) & (magnitude < T(kInfinity<T>));
  result = select(finite_negative & fractional, T(kNaN<T>), result);
  return select((x == T(1)) | (y == T(0)), T(1), result);
}

namespace detail {

// x^n for n >= 2 from the top bit of n down, in two words. The low part's relative error grows with
// n^2, which is harmless up to kMostProducts.
inline constexpr unsigned kMostProducts = 64;

template <Real T>
BUROPT_INLINE T repeated_product(DoubleWord<T> x, unsigned n) noexcept {
  DoubleWord<T> result = x;
  for (unsigned bit = std::bit_floor(n) / 2; bit > 1; bit /= 2) {
    result = square(result);
    if ((n & bit) != 0) result = result * x;
  }
  DoubleWord<T> factor = result;
  if (n % 2 != 0) {
    result = square(result);
    factor = x;
  }
  // The last product is scaled up, so that a subnormal value is rounded once, at the very end.
  const MaskOf<T> small = abs(result.high) < T(1);
  const T scale = select(small, T(0x1p64f), T(1));
  const auto [high, low] = DoubleWord<T>{result.high * scale, result.low * scale} * factor;
  const T sum = high + low;
  // An infinite product has no low part, and a zero keeps its sign.
  const T scaled = select((abs(low) < T(kInfinity<T>)) & (sum != T(0)), sum, high);
  return scaled * select(small, T(0x1p-64f), T(1));
}

}  // namespace detail

// x^n without a logarithm for |n| up to kMostProducts. x^0 = 1, also for a NaN.
template <Real T>
BUROPT_INLINE T powi(T x, int n) noexcept {
  switch (n) {
    case 0:
      return T(1);
    case 1:
      return x;
    case 2:
      return x * x;
    case 3:
      return x * x * x;
    case 4: {
      const T square = x * x;
      return square * square;
    }
    case -1:
      return T(1) / x;
    case -2: {
      const T inverse = T(1) / x;
      return inverse * inverse;
    }
    default:
      break;
  }
  const unsigned size = n < 0 ? 0u - static_cast<unsigned>(n) : static_cast<unsigned>(n);
  if (size <= detail::kMostProducts) {
    if (n > 0) return detail::repeated_product<T>({x, T(0)}, size);
    const T inverse = T(1) / x;
    const auto [back, error] = detail::product(inverse, x);
    return detail::repeated_product<T>({inverse, ((T(1) - back) - error) * inverse}, size);
  }
  // n in two words: a float has too few bits for a large one.
  const Scalar<T> high = static_cast<Scalar<T>>(n);
  const Scalar<T> low = static_cast<Scalar<T>>(static_cast<double>(n) - static_cast<double>(high));
  const T result = detail::power_of_magnitude(abs(x), T(high), T(low));
  return n % 2 == 0 ? result : copysign(result, x);
}

}  // namespace buropt
