// RandK: k entries chosen uniformly without replacement. Times d / k it is unbiased with omega = d
// / k - 1; unscaled it contracts with alpha = k / d.
#pragma once

#include "compress/selector.h"

namespace buropt {

struct RandK {
  static constexpr const char* kName = "RandK";
  static constexpr bool kBlind = true;

  std::uint32_t k;
  bool scaled;
  bool shared_seed;  // the receiver repeats the draw, so indices need not be sent

  void check(std::uint32_t d) const { check_k(kName, k, d); }
  std::uint32_t kept(std::uint32_t) const noexcept { return k; }
  double scale(std::uint32_t d) const noexcept {
    return scaled ? static_cast<double>(d) / static_cast<double>(k) : 1;
  }

  /// Floyd's sampling (Bentley and Floyd, "A sample of brilliance", 1987): k draws whatever d is.
  /// When position j joins the population, draw t from 0 .. j and take t, or j if t is taken
  /// already; every k-subset then has the same probability.
  template <class T>
  Selection select(std::span<const T>, std::uint32_t d, const Draw& draw, Scratch& scratch) const {
    if (k == d) return Selection::all(d);
    const std::size_t n_words = (std::size_t{d} + 63) / 64;
    std::uint64_t* taken = reserve(scratch.bitmap, n_words);
    std::uint32_t* indices = reserve(scratch.indices, k);

    RandomStream stream = draw.stream();
    for (std::uint32_t i = 0; i < k; ++i) {
      const std::uint32_t j = d - k + i;
      const std::uint32_t t = stream.below(j + 1);
      const std::uint32_t pick = taken[t / 64] >> (t % 64) & 1 ? j : t;
      taken[pick / 64] |= std::uint64_t{1} << (pick % 64);
      indices[i] = pick;
    }

    // Ascending order, and a clean bitmap for the next row: by a walk over the bitmap when it is
    // short beside k, else by a sort, so that the cost depends on k and not on d.
    if (n_words > k) {
      for (std::uint32_t i = 0; i < k; ++i) taken[indices[i] / 64] = 0;
      std::sort(indices, indices + k);
    } else {
      std::uint32_t* next = indices;
      for (std::uint32_t word = 0; word < n_words; ++word) {
        for (std::uint64_t left = taken[word]; left != 0; left &= left - 1) {
          *next++ = 64 * word + static_cast<std::uint32_t>(std::countr_zero(left));
        }
        taken[word] = 0;
      }
    }
    return {indices, k};
  }

  std::int64_t place_bits(std::uint32_t n_kept, std::uint32_t d) const noexcept {
    return shared_seed ? 0 : std::int64_t{n_kept} * index_bits(d);
  }
  void write_places(const Selection& kept, std::uint32_t d, BitWriter& to) const {
    if (!shared_seed) write_indices(kept, d, to);
  }
  std::optional<Selection> read_places(BitReader& from, std::uint32_t d, const Draw& draw,
                                       Scratch& scratch) const {
    if (shared_seed) return select(std::span<const float>(), d, draw, scratch);
    return read_selection(from, k, d, scratch);
  }
};

}  // namespace buropt
