// Numbers as an unevaluated sum of two words, for the places where one word is not accurate enough.
#pragma once

#include "base/simd.h"

namespace buropt::detail {

template <Real T>
struct DoubleWord {
  T high;
  T low;
};

// a + b exactly, for |a| >= |b| or a = 0.
template <Real T>
BUROPT_INLINE DoubleWord<T> ordered_sum(T a, T b) noexcept {
  const T sum = a + b;
  return {sum, b - (sum - a)};
}

// a - b exactly, for any finite a and b whose difference does not overflow.
template <Real T>
BUROPT_INLINE DoubleWord<T> difference(T a, T b) noexcept {
  const T rounded = a - b;
  const T taken = a - rounded;  // what rounding made of b
  return {rounded, (a - (rounded + taken)) + (taken - b)};
}

#if BUROPT_HAS_FMA

// a * b - c with a single rounding. On packs contraction will not do here: where the compiler
// already has the rounded product it may subtract that, and lose the error that is wanted.
template <ScalarFloat T>
BUROPT_INLINE T fused_difference(T a, T b, T c) noexcept {
  return fma(a, b, -c);
}
template <class T>
BUROPT_INLINE Pack<T> fused_difference(Pack<T> a, Pack<T> b, Pack<T> c) noexcept {
  Pack<T> r;
  for (int i = 0; i < Pack<T>::size; ++i) r.v[i] = fma(a.v[i], b.v[i], -c.v[i]);
  return r;
}

// a * b exactly.
template <Real T>
BUROPT_INLINE DoubleWord<T> product(T a, T b) noexcept {
  const T rounded = a * b;
  return {rounded, fused_difference(a, b, rounded)};
}

#else

// The upper half of the significand.
template <Real T>
BUROPT_INLINE T upper_half(T a) noexcept {
  using Bits = typename Format<T>::Bits;
  constexpr int kLowerBits = (Format<T>::kMantissaBits + 2) / 2;
  return from_bits<T>(bits(a) & UIntOf<T>(~((Bits{1} << kLowerBits) - 1)));
}

// a * b exactly (Dekker): the products of halves have no rounding errors.
template <Real T>
BUROPT_INLINE DoubleWord<T> product(T a, T b) noexcept {
  const T rounded = a * b;
  const T a_high = upper_half(a), a_low = a - a_high;
  const T b_high = upper_half(b), b_low = b - b_high;
  return {rounded, ((a_high * b_high - rounded) + a_high * b_low + a_low * b_high) + a_low * b_low};
}

#endif

// The product of two double words, its low part not normalized.
template <Real T>
BUROPT_INLINE DoubleWord<T> operator*(DoubleWord<T> a, DoubleWord<T> b) noexcept {
  const auto [high, error] = product(a.high, b.high);
  return {high, fma(a.low, b.high, fma(a.high, b.low, error))};
}

template <Real T>
BUROPT_INLINE DoubleWord<T> square(DoubleWord<T> a) noexcept {
  const auto [high, error] = product(a.high, a.high);
  return {high, fma(a.high + a.high, a.low, error)};
}

}  // namespace buropt::detail
