// BlockTopK: TopK of each block of consecutive entries. alpha = k / block, and indices are short.
#pragma once

#include "compress/topk.h"

namespace buropt {

struct BlockTopK {
  static constexpr const char* kName = "BlockTopK";
  static constexpr bool kBlind = false;

  std::uint32_t k;  // entries of each block; a last block that is shorter sends them all at most
  std::uint32_t block_size;

  void check(std::uint32_t d) const { check_k(kName, k, std::min(block_size, d)); }
  std::uint32_t kept(std::uint32_t d) const noexcept {
    std::uint32_t total = 0;
    each_block(d, [&](std::uint32_t, std::uint32_t, std::uint32_t n) { total += n; });
    return total;
  }
  double scale(std::uint32_t) const noexcept { return 1; }

  template <class T>
  Selection select(std::span<const T> x, std::uint32_t d, const Draw& draw,
                   Scratch& scratch) const {
    std::uint32_t* indices = reserve(scratch.indices, d);
    std::uint32_t n_kept = 0;
    each_block(d, [&](std::uint32_t first, std::uint32_t size, std::uint32_t n) {
      const Selection kept = TopK{n}.select(x.subspan(first, size), size, draw, scratch.inner());
      for (std::uint32_t j = 0; j < n; ++j) indices[n_kept++] = first + kept[j];
    });
    return {indices, n_kept};
  }

  std::int64_t place_bits(std::uint32_t, std::uint32_t d) const noexcept {
    std::int64_t bits = 0;
    each_block(d, [&](std::uint32_t, std::uint32_t size, std::uint32_t n) {
      bits += std::int64_t{n} * index_bits(size);
    });
    return bits;
  }
  void write_places(const Selection& kept, std::uint32_t d, BitWriter& to) const {
    std::uint32_t next = 0;
    each_block(d, [&](std::uint32_t first, std::uint32_t size, std::uint32_t n) {
      for (std::uint32_t j = 0; j < n; ++j) to.put(kept[next++] - first, index_bits(size));
    });
  }
  std::optional<Selection> read_places(BitReader& from, std::uint32_t d, const Draw&,
                                       Scratch& scratch) const {
    std::uint32_t* indices = reserve(scratch.indices, d);
    std::uint32_t n_kept = 0;
    bool possible = true;
    each_block(d, [&](std::uint32_t first, std::uint32_t size, std::uint32_t n) {
      possible = possible && read_indices(from, n, size, indices + n_kept);
      for (std::uint32_t j = 0; possible && j < n; ++j) indices[n_kept++] += first;
    });
    if (!possible) return std::nullopt;
    return Selection{indices, n_kept};
  }

 private:
  /// Calls f(first entry, entries, kept entries) for every block.
  template <class F>
  void each_block(std::uint32_t d, F&& f) const {
    for (std::uint64_t first = 0; first < d; first += block_size) {
      const auto start = static_cast<std::uint32_t>(first);
      const std::uint32_t size = std::min(block_size, d - start);
      f(start, size, std::min(k, size));
    }
  }
};

}  // namespace buropt
