// exp, exp2, exp10 and expm1.
//
// x = n ln 2 + r with |r| <= ln 2 / 2, then e^x = 2^n (1 + r + r^2 h(r)) with a minimax polynomial
// h.
#pragma once

#include "base/simd.h"
#include "math/double_word.h"
#include "math/polynomial.h"

namespace buropt {
namespace detail {

template <class S>
struct ExpConstants;

template <>
struct ExpConstants<double> {
  static constexpr double kInverseLn2 = 0x1.71547652b82fep+0;
  // The high part has 41 bits, so that its product with any n is exact without an fma.
  static constexpr double kLn2High = 0x1.62e42fefa3p-1;
  static constexpr double kLn2Low = 0x1.3de6af278ece6p-42;
  static constexpr double kLn10High = 0x1.26bb1bbb55516p+1;
  static constexpr double kLn10Low = -0x1.f48ad494ea3e9p-53;
  // e^x is 0 below the first and infinite above the last; below the second it may be subnormal.
  static constexpr double kZero = -746.0;
  static constexpr double kSubnormal = -707.0;
  static constexpr double kOverflow = 710.0;
  static constexpr double kHalfOverflow = 710.5;  // e^x / 2 is infinite above
  static constexpr double kMinusOne = -40.0;      // expm1 is -1 from here down
  static constexpr double kIdentity = 0x1p-54;    // expm1 is x for smaller |x|
  // Error of r^2 h(r): 2^-57.9 relative to e^r.
  static constexpr double kExp[] = {
      0x1.000000000000ap-1,  0x1.5555555555503p-3,  0x1.5555555550699p-5,  0x1.1111111125942p-7,
      0x1.6c16c18482eeep-10, 0x1.a01a013594d54p-13, 0x1.a0199936d23e6p-16, 0x1.71df0ce9e1e09p-19,
      0x1.28ae277ab9aebp-22, 0x1.ada55b7f2550dp-26};
  // The same, 2^-61.6 relative to e^r - 1.
  static constexpr double kExpm1[] = {
      0x1.0000000000000p-1,  0x1.5555555555559p-3,  0x1.5555555555551p-5,  0x1.111111110f650p-7,
      0x1.6c16c16c18e46p-10, 0x1.a01a01b006e43p-13, 0x1.a01a019708046p-16, 0x1.71ddf803b4647p-19,
      0x1.27e50061836e6p-22, 0x1.af5f4597bb3b4p-26, 0x1.1f369e50c13b8p-29};
};

template <>
struct ExpConstants<float> {
  static constexpr float kInverseLn2 = 0x1.715476p+0f;
  static constexpr float kLn2High = 0x1.62e4p-1f;  // 15 bits
  static constexpr float kLn2Low = 0x1.7f7d1cp-20f;
  static constexpr float kLn10High = 0x1.26bb1cp+1f;
  static constexpr float kLn10Low = -0x1.12aabap-25f;
  static constexpr float kZero = -104.0f;
  static constexpr float kSubnormal = -86.0f;
  static constexpr float kOverflow = 89.0f;
  static constexpr float kHalfOverflow = 89.5f;
  static constexpr float kMinusOne = -18.0f;
  static constexpr float kIdentity = 0x1p-25f;
  // 2^-28.2 and 2^-31.1.
  static constexpr float kExp[] = {0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558b2p-5f, 0x1.123996p-7f,
                                   0x1.6a4b52p-10f};
  static constexpr float kExpm1[] = {0x1.000000p-1f, 0x1.555554p-3f,  0x1.5554f8p-5f,
                                     0x1.1112d8p-7f, 0x1.6d3a4ep-10f, 0x1.9e7352p-13f};
};

// 2^n e^r for |r| <= ln 2 / 2 (by a rounding more), and the rounding of it. `n_bits` is n in two's
// complement; `subnormal` must be set where the result may be a subnormal number.
template <Real T>
BUROPT_INLINE DoubleWord<T> scaled_exp(T r, UIntOf<T> n_bits, MaskOf<T> subnormal) noexcept {
  using C = ExpConstants<Scalar<T>>;
  using Bits = UIntOf<T>;
  const T fraction = fma(r * r, polynomial(r, C::kExp), r);

  // 2^n = scale * factor. Two factors because n reaches past both ends of the exponent field; the
  // one rounding of a subnormal result happens in the last product.
  const Bits bias = select(subnormal, Bits(Format<T>::kBias + 64), Bits(Format<T>::kBias - 1));
  const T factor = select(subnormal, T(0x1p-64f), T(2));
  const T scale = from_bits<T>((n_bits + bias) << Format<T>::kMantissaBits);
  const T y = fma(scale, fraction, scale);
  return {y * factor, fma(scale, fraction, scale - y) * factor};
}

// e^(high - low) and the rounding of it. `low` is at most a few units in the last place of `high`;
// a zero costs nothing.
template <Real T>
BUROPT_INLINE DoubleWord<T> exp_of_difference(T high, T low) noexcept {
  using C = ExpConstants<Scalar<T>>;
  const T x = max(T(C::kZero), min(T(C::kOverflow), high));  // a NaN passes
  const auto [n, n_bits] = nearest_int(x, T(C::kInverseLn2));
  const T r = fma(-n, T(C::kLn2Low), fma(-n, T(C::kLn2High), x)) - low;
  return scaled_exp(r, n_bits, x < T(C::kSubnormal));
}

// e^x - 1 = 2^h (scale * fraction + (scale - 2^-h)), where scale is a power of two and h is the
// number of halvings. One keeps the scale finite for every x whose result is, two for every x with
// a finite hyperbolic sine; x must not be below kMinusOne.
template <Real T>
struct Expm1Parts {
  T scale;
  T fraction;
  T fraction_error;  // fraction + fraction_error is good to a fifth of a unit in the last place
};

template <int kHalvings = 1, Real T>
BUROPT_INLINE Expm1Parts<T> expm1_parts(T x) noexcept {
  using C = ExpConstants<Scalar<T>>;
  using Bits = UIntOf<T>;
  constexpr int kMantissa = Format<T>::kMantissaBits;

  const auto [n, n_bits] = nearest_int(x, T(C::kInverseLn2));
  const T high = fma(-n, T(C::kLn2High), x);
  const T low = rounded_product(n, T(C::kLn2Low));
  const T r = high - low;
  const T r_error = (high - r) - low;  // counts double where the result cancels
  const T curve = fma(r * r, polynomial(r, C::kExpm1), r_error);
  const T fraction = r + curve;
  const T scale = from_bits<T>((n_bits + Bits(Format<T>::kBias - kHalvings)) << kMantissa);
  return {scale, fraction, curve - (fraction - r)};
}

}  // namespace detail

template <Real T>
BUROPT_INLINE T exp(T x) noexcept {
  return detail::exp_of_difference(x, T(0)).high;
}

/// exp of x <= 0, as for weights relative to the largest one: the same bits for less work, since
/// one scale serves all results. None is rounded to 0, which some processors are slow at:
/// -infinity, as in a mask, costs no more than other numbers.
template <Real T>
BUROPT_INLINE T exp_of_nonpositive(T x) noexcept {
  using C = detail::ExpConstants<Scalar<T>>;
  // To this number's sum with n the bits of n are added, and 65 more than the exponent's bias,
  // which is even: halves are rounded as by `nearest_int`.
  constexpr Scalar<T> kRound = Format<T>::kRound + Scalar<T>(Format<T>::kBias + 65);
  const MaskOf<T> vanishes = x < T(C::kZero);
  const T kept = select(vanishes, T(0), x);
  const T shifted = fma(kept, T(C::kInverseLn2), T(kRound));
  const T n = shifted - T(kRound);
  const T r = fma(-n, T(C::kLn2Low), fma(-n, T(C::kLn2High), kept));
  const T fraction = fma(r * r, detail::polynomial(r, C::kExp), r);
  const T scale = from_bits<T>(bits(shifted) << Format<T>::kMantissaBits);
  return select(vanishes, T(0), fma(scale, fraction, scale) * T(0x1p-65f));
}

template <Real T>
BUROPT_INLINE T exp2(T x) noexcept {
  using C = detail::ExpConstants<Scalar<T>>;
  constexpr Scalar<T> kEnd = Scalar<T>(Format<T>::kBias) + Scalar<T>(1.25);
  constexpr Scalar<T> kSubnormal = 3 - Scalar<T>(Format<T>::kBias);
  constexpr Scalar<T> kZero = kSubnormal - Scalar<T>(Format<T>::kMantissaBits + 4);
  const T clamped = max(T(kZero), min(T(kEnd), x));  // a NaN passes
  const auto [n, n_bits] = nearest_int(clamped, T(1));
  const T r = (clamped - n) * T(1 / C::kInverseLn2);
  return detail::scaled_exp(r, n_bits, clamped < T(kSubnormal)).high;
}

template <Real T>
BUROPT_INLINE T exp10(T x) noexcept {
  using C = detail::ExpConstants<Scalar<T>>;
  const auto [high, error] = detail::product(x, T(C::kLn10High));
  const T low = fma(x, T(C::kLn10Low), error);
  // Beyond any finite result the low part is no longer small, or not even a number.
  return detail::exp_of_difference(high, select(abs(high) < T(1024), -low, T(0))).high;
}

template <Real T>
BUROPT_INLINE T expm1(T x) noexcept {
  using C = detail::ExpConstants<Scalar<T>>;
  const T clamped = max(T(C::kMinusOne), min(T(C::kOverflow), x));
  const auto [scale, fraction, unused] = detail::expm1_parts(clamped);
  const T y = T(2) * fma(scale, fraction, scale - T(0.5f));
  return select(abs(x) < T(C::kIdentity), x, y);  // also keeps the sign of a zero
}

}  // namespace buropt
