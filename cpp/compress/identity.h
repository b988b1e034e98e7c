// Identity: every entry as it is. omega = 0, alpha = 1, d b bits.
#pragma once

#include "compress/selector.h"

namespace buropt {

struct Identity {
  static constexpr const char* kName = "Identity";
  static constexpr bool kBlind = true;

  void check(std::uint32_t) const noexcept {}
  std::uint32_t kept(std::uint32_t d) const noexcept { return d; }
  double scale(std::uint32_t) const noexcept { return 1; }

  template <class T>
  Selection select(std::span<const T>, std::uint32_t d, const Draw&, Scratch&) const noexcept {
    return Selection::all(d);
  }
  std::int64_t place_bits(std::uint32_t, std::uint32_t) const noexcept { return 0; }
  void write_places(const Selection&, std::uint32_t, BitWriter&) const noexcept {}
  std::optional<Selection> read_places(BitReader&, std::uint32_t d, const Draw&,
                                       Scratch&) const noexcept {
    return Selection::all(d);
  }
};

}  // namespace buropt
