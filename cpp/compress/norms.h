// Norms and products of vectors, summed in double in an order that does not depend on the machine.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>

#include "base/simd.h"
#include "compress/bits.h"

namespace buropt {

/// The sum of f(i) for i below n, in eight sums side by side, whatever the registers are.
template <class F>
double sum_over(std::size_t n, F&& f) noexcept {
  constexpr std::size_t kSums = 8;
  std::array<double, kSums> sums{};
  std::size_t i = 0;
  for (; i + kSums <= n; i += kSums) {
    for (std::size_t j = 0; j < kSums; ++j) sums[j] += f(i + j);
  }
  for (; i < n; ++i) sums[i % kSums] += f(i);
  for (std::size_t half = kSums / 2; half > 0; half /= 2) {
    for (std::size_t j = 0; j < half; ++j) sums[j] += sums[j + half];
  }
  return sums[0];
}

/// The sum of f(entry).
template <class T, class F>
double sum_of(std::span<const T> x, F&& f) noexcept {
  return sum_over(x.size(), [&](std::size_t i) { return f(static_cast<double>(x[i])); });
}

inline double product(std::span<const double> x, std::span<const double> y) noexcept {
  return sum_over(x.size(), [&](std::size_t i) { return rounded_product(x[i], y[i]); });
}

/// y += a x.
inline void add_multiple(double a, std::span<const double> x, std::span<double> y) noexcept {
  for (std::size_t i = 0; i < x.size(); ++i) y[i] += rounded_product(a, x[i]);
}

template <class T>
double norm_1(std::span<const T> x) noexcept {
  return sum_of(x, [](double entry) { return std::abs(entry); });
}

/// |x| as an integer of the same order. Every NaN gives the value just above infinity.
template <class T>
BitsOf<T> magnitude(T x) noexcept {
  constexpr BitsOf<T> kInfinity = std::bit_cast<BitsOf<T>>(std::numeric_limits<T>::infinity());
  constexpr BitsOf<T> kNotSign = static_cast<BitsOf<T>>(~BitsOf<T>{0}) >> 1;
  return std::min<BitsOf<T>>(std::bit_cast<BitsOf<T>>(x) & kNotSign, kInfinity + 1);
}

/// The largest magnitude; NaN if there is a NaN.
template <class T>
double norm_inf(std::span<const T> x) noexcept {
  BitsOf<T> largest = 0;
  for (const T entry : x) largest = std::max(largest, magnitude(entry));
  return static_cast<double>(std::bit_cast<T>(largest));
}

/// Never below the largest magnitude, and 0 only for zeros: where squares would overflow or vanish,
/// they are those of x / max |x|.
template <class T>
double norm_2(std::span<const T> x) noexcept {
  const double squares = sum_of(x, [](double entry) { return rounded_product(entry, entry); });
  if (squares > 0x1p-900 && squares < 0x1p1000) return std::sqrt(squares);
  const double largest = norm_inf(x);
  if (!(largest > 0 && largest <= std::numeric_limits<double>::max())) return largest;
  return largest * std::sqrt(sum_of(x, [largest](double entry) {
           return rounded_product(entry / largest, entry / largest);
         }));
}

}  // namespace buropt
