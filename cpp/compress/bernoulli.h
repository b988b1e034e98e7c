// Bernoulli: the whole vector with probability p, else nothing. Times 1 / p it is unbiased with
// omega = 1 / p - 1; unscaled (lazy) it contracts with alpha = p. One bit tells which.
#pragma once

#include "compress/selector.h"

namespace buropt {

struct Bernoulli {
  static constexpr const char* kName = "Bernoulli";
  static constexpr bool kBlind = true;

  double p;
  bool scaled;

  void check(std::uint32_t) const noexcept {}
  std::uint32_t kept(std::uint32_t d) const noexcept { return d; }
  double scale(std::uint32_t) const noexcept { return scaled ? 1 / p : 1; }

  template <class T>
  Selection select(std::span<const T>, std::uint32_t d, const Draw& draw, Scratch&) const noexcept {
    return draw.stream().uniform() < p ? Selection::all(d) : Selection::none();
  }
  std::int64_t place_bits(std::uint32_t, std::uint32_t) const noexcept { return 1; }
  void write_places(const Selection& kept, std::uint32_t, BitWriter& to) const {
    to.put(kept.size > 0, 1);
  }
  std::optional<Selection> read_places(BitReader& from, std::uint32_t d, const Draw&,
                                       Scratch&) const noexcept {
    if (!from.has(1)) return std::nullopt;
    return from.get(1) != 0 ? Selection::all(d) : Selection::none();
  }
};

}  // namespace buropt
