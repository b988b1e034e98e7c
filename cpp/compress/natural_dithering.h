// Natural dithering (Horvath et al., arXiv:1905.10988): as random dithering, with the levels 0,
// 2^(1 - levels), ..., 1/2, 1. omega <= 1/8 + u min(1, u), u = d^(1 / min(p, 2)) 2^(1 - levels).
#pragma once

#include "compress/dithering.h"

namespace buropt {

/// levels: at most 255, for 2^-254 is far from subnormal numbers.
struct NaturalDithering : Dithering {
  static constexpr const char* kName = "NaturalDithering";

  /// Between powers of two by random bits added to the mantissa, as by natural compression.
  template <class T>
  std::uint32_t code(T x, T header, BitsOf<T> random) const noexcept {
    const double part = share(x, header);
    const std::uint64_t mantissa = std::uint64_t{random} << (64 - kValueBits<T>) >> 12;
    const std::uint64_t exponent = (std::bit_cast<std::uint64_t>(part) + mantissa) >> 52;
    const std::uint32_t smallest = kBias + 1 - levels;  // the exponent of the lowest level
    const std::uint32_t lowest = unit(random) < part * power(kBias + levels - 1);
    const std::uint32_t between = static_cast<std::uint32_t>(exponent) + 1 - smallest;
    const std::uint32_t level = part < power(smallest) ? lowest : between;
    return with_sign(level, x);
  }

  template <class T>
  T value(std::uint32_t code, T header) const noexcept {
    const std::uint32_t level = code >> 1;
    const std::uint64_t sign = std::uint64_t{code & 1} << 63;
    const std::uint64_t exponent = level == 0 ? 0 : kBias + level - levels;
    return static_cast<T>(static_cast<double>(header) *
                          std::bit_cast<double>(exponent << 52 | sign));
  }

 private:
  static constexpr std::uint32_t kBias = 1023;

  /// 2^(exponent - kBias).
  static double power(std::uint32_t exponent) noexcept {
    return std::bit_cast<double>(std::uint64_t{exponent} << 52);
  }
};

}  // namespace buropt
