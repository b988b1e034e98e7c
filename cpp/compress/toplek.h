// TopLEK (Burlachenko and Richtarik, arXiv:2410.08760): a random number of largest entries, at most
// k, such that the mean of ||C(x) - x||^2 is exactly (1 - k / d) ||x||^2.
//
// Sorted by magnitude, let E_j be the squares of the first j entries and m the smallest j with E_j
// >= (k / d) E_d. Then m - 1 entries are sent with probability (E_m - (k / d) E_d) / (E_m -
// E_{m-1}), else m.
#pragma once

#include "compress/norms.h"
#include "compress/topk.h"

namespace buropt {

struct TopLEK {
  static constexpr const char* kName = "TopLEK";
  static constexpr bool kBlind = false;

  std::uint32_t k;

  void check(std::uint32_t d) const { check_k(kName, k, d); }
  std::uint32_t kept(std::uint32_t) const noexcept { return k; }
  double scale(std::uint32_t) const noexcept { return 1; }

  /// A vector that is not finite is treated as by TopK; of zeros nothing is sent.
  template <class T>
  Selection select(std::span<const T> x, std::uint32_t d, const Draw& draw,
                   Scratch& scratch) const {
    if (k == d) return Selection::all(d);
    const Selection top = TopK{k}.select(x, d, draw, scratch);
    std::uint32_t* indices = scratch.indices.data();
    std::sort(indices, indices + k, [x](std::uint32_t i, std::uint32_t j) {
      return magnitude(x[i]) != magnitude(x[j]) ? magnitude(x[i]) > magnitude(x[j]) : i < j;
    });
    const double largest = std::abs(static_cast<double>(x[indices[0]]));
    if (largest == 0) return Selection::none();
    std::uint32_t n_kept = k;
    if (std::isfinite(largest)) {
      n_kept = draw_length(x, largest, indices, draw.stream().uniform());
    }
    std::sort(indices, indices + n_kept);
    return {top.indices, n_kept};
  }

  std::int64_t place_bits(std::uint32_t n_kept, std::uint32_t d) const noexcept {
    return count_bits(d) + std::int64_t{n_kept} * index_bits(d);
  }
  void write_places(const Selection& kept, std::uint32_t d, BitWriter& to) const {
    if (k < d) to.put(kept.size, count_bits(d));
    write_indices(kept, d, to);
  }
  std::optional<Selection> read_places(BitReader& from, std::uint32_t d, const Draw&,
                                       Scratch& scratch) const {
    if (!from.has(count_bits(d))) return std::nullopt;
    const auto n_kept = k == d ? k : from.get(count_bits(d));
    if (n_kept > k) return std::nullopt;
    return read_selection(from, n_kept, d, scratch);
  }

 private:
  /// Bits that tell how many entries follow, 0 to k; none where it is always d.
  std::uint32_t count_bits(std::uint32_t d) const noexcept {
    return k == d ? 0 : static_cast<std::uint32_t>(std::bit_width(k));
  }

  /// Energies are of x / largest, so that squares neither overflow nor all vanish.
  template <class T>
  std::uint32_t draw_length(std::span<const T> x, double largest, const std::uint32_t* order,
                            double uniform) const noexcept {
    const auto energy = [largest](double entry) {
      const double ratio = entry / largest;
      return rounded_product(ratio, ratio);
    };
    const double share = static_cast<double>(k) / static_cast<double>(x.size());
    const double target = sum_of(x, energy) * share;
    double sent = 0;
    for (std::uint32_t m = 1; m <= k; ++m) {
      const double gain = energy(static_cast<double>(x[order[m - 1]]));
      sent += gain;
      if (sent >= target) return rounded_product(uniform, gain) < sent - target ? m - 1 : m;
    }
    return k;
  }
};

}  // namespace buropt
