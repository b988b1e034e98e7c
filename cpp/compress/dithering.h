// What ditherings share: the header of a message is the norm, the code of an entry a sign and a
// level, to which its part of the norm is rounded.
#pragma once

#include "compress/norms.h"
#include "compress/quantizer.h"

namespace buropt {

enum class Norm { one, two, inf };

/// Of T, or an infinity; not below the largest magnitude.
template <class T>
T norm_of(std::span<const T> x, Norm norm) noexcept {
  const double size = norm == Norm::one ? norm_1(x) : norm == Norm::two ? norm_2(x) : norm_inf(x);
  return static_cast<T>(size);
}

/// |x| as a part of the norm, in [0, 1]; 0 for zeros.
template <class T>
double share(T x, T norm) noexcept {
  return static_cast<double>(std::abs(x)) / static_cast<double>(norm > 0 ? norm : T(1));
}

/// The sign in the lowest bit, set for negative numbers, and the level above it.
template <class T>
std::uint32_t with_sign(std::uint32_t level, T x) noexcept {
  const std::uint32_t sign = x < 0;
  return level << 1 | (level > 0 ? sign : 0);
}

/// Bits of such a code for levels 0, ..., n: 1 + ceil(log2(n + 1)).
constexpr std::uint32_t signed_width(std::uint32_t n) noexcept {
  return 1 + static_cast<std::uint32_t>(std::bit_width(n));
}

struct Dithering {
  static constexpr bool kHasHeader = true;
  static constexpr bool kIsRandom = true;

  std::uint32_t levels;
  Norm norm;

  void check(std::uint32_t) const noexcept {}

  template <class T>
  std::uint32_t width() const noexcept {
    return signed_width(levels);
  }

  template <class T>
  T header(std::span<const T> x) const noexcept {
    return norm_of(x, norm);
  }
};

}  // namespace buropt
