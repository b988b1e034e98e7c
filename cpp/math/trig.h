// sin, cos, tan and cosm1.
//
// |x| = n pi/2 + r with |r| <= pi/4, r in two words; both series are evaluated and the quadrant n
// mod 4 picks one and its sign. Very large arguments, and the very rare ones that come so close to
// a multiple of pi/2 that the reduction leaves too few bits, go to the C library lane by lane.
#pragma once

#include <cmath>

#include "base/simd.h"
#include "math/double_word.h"
#include "math/polynomial.h"

namespace buropt {
namespace detail {

template <class S>
struct TrigConstants;

template <>
struct TrigConstants<double> {
  static constexpr double kTwoOverPi = 0x1.45f306dc9c883p-1;
  // pi/2 in parts, all but the last short enough for exact products with any n that occurs.
  static constexpr double kParts[] = {0x1.921fb544p+0, 0x1.0b4611a6p-34, 0x1.3198a2e037073p-69};
  static constexpr double kLargest = 0x1p20;
  // The reduced argument is good to n 2^-121, so to 2^-57 of itself unless it is below n 2^-64.
  static constexpr double kCancelled = 0x1p-64;
  // sin r = r + r^3 S(r^2), cos r = 1 - r^2 / 2 + r^4 C(r^2); 2^-57.9 and 2^-63.9.
  static constexpr double kSin[] = {-0x1.5555555555548p-3,  0x1.111111110f754p-7,
                                    -0x1.a01a019bf0682p-13, 0x1.71de355d2ec03p-19,
                                    -0x1.ae5e52d0693ecp-26, 0x1.5d8db0eaf08bcp-33};
  static constexpr double kCos[] = {0x1.555555555554bp-5,  -0x1.6c16c16c15010p-10,
                                    0x1.a01a019c8e417p-16, -0x1.27e4f7f0ae4adp-22,
                                    0x1.1ee9db104d184p-29, -0x1.8fa61155bd147p-37};
};

template <>
struct TrigConstants<float> {
  static constexpr float kTwoOverPi = 0x1.45f306p-1f;
  static constexpr float kParts[] = {0x1.92p+0f, 0x1.fb4p-12f, 0x1.444p-24f, 0x1.68c234p-39f};
  static constexpr float kLargest = 0x1p12f;
  static constexpr float kCancelled = 0x1p-34f;  // n 2^-62, 2^-28 of itself
  // 2^-27.9 and 2^-33.
  static constexpr float kSin[] = {-0x1.555546p-3f, 0x1.110776p-7f, -0x1.9953p-13f};
  static constexpr float kCos[] = {0x1.55554ap-5f, -0x1.6c0c2ap-10f, 0x1.99e904p-16f};
};

template <Real T>
struct Quadrant {
  T sin_r;
  T cos_r;
  UIntOf<T> n;     // only the lowest bits count
  MaskOf<T> hard;  // not good enough: ask the C library
};

template <Real T>
BUROPT_INLINE Quadrant<T> reduce_and_evaluate(T x) noexcept {
  using C = TrigConstants<Scalar<T>>;
  constexpr int kParts = sizeof(C::kParts) / sizeof(C::kParts[0]);

  const auto [n, n_bits] = nearest_int(x, T(C::kTwoOverPi));
  T high = fma(-n, T(C::kParts[0]), x);  // exact
  T low = T(0);
  for (int i = 1; i < kParts - 1; ++i) {
    const T part = n * T(C::kParts[i]);  // exact
    const DoubleWord<T> next = difference(high, part);
    low += next.low;
    high = next.high;
  }
  low = fma(-n, T(C::kParts[kParts - 1]), low);
  const T r = high + low;
  const T r_error = (high - r) + low;

  const T z = r * r;
  const T half_z = T(0.5f) * z;
  // sin(r + e) = sin r + e and cos(r + e) = cos r - r e, to first order.
  const T sin_r = r + fma(z * r, polynomial(z, C::kSin), r_error);
  const T w = T(1) - half_z;
  const T w_error = (T(1) - w) - half_z;
  const T cos_r = w + fma(z * z, polynomial(z, C::kCos), fma(-r, r_error, w_error));

  const MaskOf<T> hard = (x > T(C::kLargest)) | (abs(r) < n * T(C::kCancelled));
  return {sin_r, cos_r, n_bits, hard};
}

// +-sin r or +-cos r: the sine of the quadrant's n-th quarter turn plus r.
template <Real T>
BUROPT_INLINE T turned_sin(const Quadrant<T>& q, UIntOf<T> n) noexcept {
  using Bits = UIntOf<T>;
  constexpr int kTopBit = 8 * static_cast<int>(sizeof(Scalar<T>)) - 1;
  const T y = select((n & Bits(1)) == Bits(0), q.sin_r, q.cos_r);
  return from_bits<T>(bits(y) ^ ((n << (kTopBit - 1)) & Bits(Format<T>::kSignBit)));
}

template <ScalarFloat T>
BUROPT_INLINE T replace_where(bool hard, T y, T x, T (*function)(T)) noexcept {
  return hard ? function(x) : y;
}

// The lanes of y where `hard` is set become function(x). Out of line: it is almost never entered.
template <class T>
[[gnu::noinline, gnu::cold]] Pack<T> replace_lanes(Mask<T> hard, Pack<T> y, Pack<T> x,
                                                   T (*function)(T)) noexcept {
  for (int i = 0; i < Pack<T>::size; ++i) {
    if (hard[i]) y.v[i] = function(x[i]);
  }
  return y;
}
template <class T>
BUROPT_INLINE Pack<T> replace_where(Mask<T> hard, Pack<T> y, Pack<T> x, T (*function)(T)) noexcept {
  if (any(hard)) [[unlikely]]
    return replace_lanes(hard, y, x, function);
  return y;
}

}  // namespace detail

template <Real T>
BUROPT_INLINE T sin(T x) noexcept {
  const auto q = detail::reduce_and_evaluate(abs(x));
  const T y = detail::turned_sin(q, q.n);
  const T odd = from_bits<T>(bits(y) ^ sign_bit(x));
  return detail::replace_where(
      q.hard, odd, x, +[](Scalar<T> lane) noexcept { return std::sin(lane); });
}

template <Real T>
BUROPT_INLINE T cos(T x) noexcept {
  const auto q = detail::reduce_and_evaluate(abs(x));
  const T y = detail::turned_sin(q, q.n + UIntOf<T>(1));
  return detail::replace_where(
      q.hard, y, x, +[](Scalar<T> lane) noexcept { return std::cos(lane); });
}

template <Real T>
BUROPT_INLINE T tan(T x) noexcept {
  const auto q = detail::reduce_and_evaluate(abs(x));
  const MaskOf<T> odd_quarter = (q.n & UIntOf<T>(1)) != UIntOf<T>(0);
  const T y = select(odd_quarter, -q.cos_r, q.sin_r) / select(odd_quarter, q.sin_r, q.cos_r);
  const T odd = from_bits<T>(bits(y) ^ sign_bit(x));
  return detail::replace_where(
      q.hard, odd, x, +[](Scalar<T> lane) noexcept { return std::tan(lane); });
}

// cos x - 1 = -2 sin^2(x / 2), right near 0.
template <Real T>
BUROPT_INLINE T cosm1(T x) noexcept {
  const T s = sin(T(0.5f) * x);
  return rounded_product(T(-2) * s, s);  // 0 at 0, and not -0
}

}  // namespace buropt
