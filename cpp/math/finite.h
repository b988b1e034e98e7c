// Whether numbers are finite.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace buropt {

template <class T>
bool all_finite(const T* x, std::int64_t n) noexcept {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  constexpr Bits kInfinity = std::bit_cast<Bits>(std::numeric_limits<T>::infinity());
  // Without a branch, so that it is done in registers: all exponent bits set means not finite.
  Bits found = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    found |= static_cast<Bits>((std::bit_cast<Bits>(x[i]) & kInfinity) == kInfinity);
  }
  return found == 0;
}

}  // namespace buropt
