// Random dithering, or QSGD with the Euclidean norm (Alistarh et al., arXiv:1610.02132).
//
// |x_j| / ||x|| is rounded at random, without bias, to a multiple of 1 / levels.
#pragma once

#include "compress/dithering.h"

namespace buropt {

/// levels: below 2^31.
struct RandomDithering : Dithering {
  static constexpr const char* kName = "RandomDithering";

  template <class T>
  std::uint32_t code(T x, T header, BitsOf<T> random) const noexcept {
    const double scaled = rounded_product(share(x, header), static_cast<double>(levels));
    const auto below = static_cast<std::uint32_t>(static_cast<std::int32_t>(scaled));
    const bool up = unit(random) < scaled - static_cast<double>(static_cast<std::int32_t>(below));
    return with_sign(below + up, x);
  }

  template <class T>
  T value(std::uint32_t code, T header) const noexcept {
    const double size = static_cast<double>(static_cast<std::int32_t>(code >> 1)) / levels;
    return static_cast<T>(static_cast<double>(header) * ((code & 1) != 0 ? -size : size));
  }
};

}  // namespace buropt
