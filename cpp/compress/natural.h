// Natural compression (Horvath et al., arXiv:1905.10988): every entry becomes one of the two powers
// of two around it, at random so that the mean is right. omega = 1/8; 9 or 12 bits an entry.
//
// A code is the sign and the exponent of the float. Adding random bits to the mantissa carries into
// the exponent with probability mantissa / 2^(bits of the mantissa): that is the rounding.
//
// Numbers below the smallest normal one round to 0 or to it: without bias, but beyond omega. Those
// above the largest power of two round to it, never to infinity. Infinities stay. A negative zero
// is a zero, and its code means NaN.
#pragma once

#include "compress/quantizer.h"

namespace buropt {

struct NaturalCompression {
  static constexpr const char* kName = "NaturalCompression";
  static constexpr bool kHasHeader = false;
  static constexpr bool kIsRandom = true;

  void check(std::uint32_t) const noexcept {}

  template <class T>
  std::uint32_t width() const noexcept {
    return kValueBits<T> - kMantissa<T>;
  }

  template <class T>
  std::uint32_t code(T x, T, BitsOf<T> random) const noexcept {
    constexpr BitsOf<T> kSign = BitsOf<T>{1} << (kValueBits<T> - 1);
    constexpr BitsOf<T> kSignCode = kSign >> kMantissa<T>;
    constexpr BitsOf<T> kInfinity = kSignCode - 1;  // the exponent of infinities
    const auto bits = std::bit_cast<BitsOf<T>>(x);
    const BitsOf<T> size = bits & (kSign - 1);
    const BitsOf<T> below = size >> kMantissa<T>;
    const BitsOf<T> drawn = (size + (random >> (kValueBits<T> - kMantissa<T>))) >> kMantissa<T>;
    const BitsOf<T> exponent = below >= kInfinity - 1 ? below : drawn;
    const BitsOf<T> sign = exponent == 0 ? 0 : (bits & kSign) >> kMantissa<T>;
    const bool is_nan = size > (kInfinity << kMantissa<T>);
    return static_cast<std::uint32_t>(is_nan ? kSignCode : sign | exponent);
  }

  template <class T>
  T value(std::uint32_t code, T) const noexcept {
    constexpr std::uint32_t kNaN = 1u << (kValueBits<T> - 1 - kMantissa<T>);
    const T power = std::bit_cast<T>(static_cast<BitsOf<T>>(BitsOf<T>{code} << kMantissa<T>));
    return code == kNaN ? std::numeric_limits<T>::quiet_NaN() : power;
  }

 private:
  template <class T>
  static constexpr std::uint32_t kMantissa = std::numeric_limits<T>::digits - 1;
};

}  // namespace buropt
