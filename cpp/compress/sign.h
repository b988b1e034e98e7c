// Signs. Alone they are neither unbiased nor contractive; times the mean magnitude they contract
// with alpha = ||x||_1^2 / (d ||x||^2) >= 1 / d.
//
// One bit has two values: zeros and NaN count as positive.
#pragma once

#include "compress/norms.h"
#include "compress/quantizer.h"

namespace buropt {

/// What both share.
struct SignCode {
  static constexpr bool kIsRandom = false;

  void check(std::uint32_t) const noexcept {}

  template <class T>
  std::uint32_t width() const noexcept {
    return 1;
  }

  template <class T>
  std::uint32_t code(T x, T, BitsOf<T>) const noexcept {
    return x < 0;
  }

  /// size, or -size for code 1; without a branch, which could not be predicted.
  template <class T>
  static T with_sign(T size, std::uint32_t code) noexcept {
    const auto sign = static_cast<BitsOf<T>>(BitsOf<T>{code} << (kValueBits<T> - 1));
    return std::bit_cast<T>(std::bit_cast<BitsOf<T>>(size) ^ sign);
  }
};

struct Sign : SignCode {
  static constexpr const char* kName = "Sign";
  static constexpr bool kHasHeader = false;

  template <class T>
  T value(std::uint32_t code, T) const noexcept {
    return with_sign(T(1), code);
  }
};

struct ScaledSign : SignCode {
  static constexpr const char* kName = "ScaledSign";
  static constexpr bool kHasHeader = true;

  template <class T>
  T header(std::span<const T> x) const noexcept {
    return static_cast<T>(norm_1(x) / static_cast<double>(x.size()));
  }

  template <class T>
  T value(std::uint32_t code, T header) const noexcept {
    return with_sign(header, code);
  }
};

}  // namespace buropt
