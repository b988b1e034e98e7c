// RandSeqK: k entries in a row, from a random one on, the last before the first. Times d / k it is
// unbiased with omega = d / k - 1, and its memory traffic is that of one copy.
#pragma once

#include "compress/selector.h"

namespace buropt {

struct RandSeqK {
  static constexpr const char* kName = "RandSeqK";
  static constexpr bool kBlind = true;

  std::uint32_t k;
  bool shared_seed;  // the receiver repeats the draw, so the first index need not be sent

  void check(std::uint32_t d) const { check_k(kName, k, d); }
  std::uint32_t kept(std::uint32_t) const noexcept { return k; }
  double scale(std::uint32_t d) const noexcept {
    return static_cast<double>(d) / static_cast<double>(k);
  }

  template <class T>
  Selection select(std::span<const T>, std::uint32_t d, const Draw& draw, Scratch& scratch) const {
    if (k == d) return Selection::all(d);
    return from_first(draw.stream().below(d), d, scratch);
  }

  std::int64_t place_bits(std::uint32_t, std::uint32_t d) const noexcept {
    return shared_seed ? 0 : index_bits(d);
  }
  void write_places(const Selection& kept, std::uint32_t d, BitWriter& to) const {
    if (!shared_seed) to.put(first_of(kept, d), index_bits(d));
  }
  std::optional<Selection> read_places(BitReader& from, std::uint32_t d, const Draw& draw,
                                       Scratch& scratch) const {
    if (shared_seed) return select(std::span<const float>(), d, draw, scratch);
    if (!from.has(index_bits(d))) return std::nullopt;
    const auto first = from.get(index_bits(d));
    if (first >= d || (k == d && first > 0)) return std::nullopt;
    return k == d ? Selection::all(d) : from_first(first, d, scratch);
  }

 private:
  /// Ascending: those that lie past the end come first.
  Selection from_first(std::uint32_t first, std::uint32_t d, Scratch& scratch) const {
    std::uint32_t* indices = reserve(scratch.indices, k);
    const std::uint32_t wrapped = first > d - k ? first - (d - k) : 0;
    for (std::uint32_t j = 0; j < wrapped; ++j) indices[j] = j;
    for (std::uint32_t j = wrapped; j < k; ++j) indices[j] = first + (j - wrapped);
    return {indices, k};
  }

  /// The entry that follows the gap.
  std::uint32_t first_of(const Selection& kept, std::uint32_t d) const noexcept {
    if (k == d || kept[0] > 0 || kept[k - 1] < d - 1) return kept[0];
    std::uint32_t j = 1;
    while (kept[j] == kept[j - 1] + 1) ++j;
    return kept[j];
  }
};

}  // namespace buropt
