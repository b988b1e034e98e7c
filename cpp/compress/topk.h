// TopK: the k entries of largest magnitude. Biased; ||C(x) - x||^2 <= (1 - k / d) ||x||^2 always.
//
// Ties go to the lowest index. A NaN counts as larger than infinity, and all NaNs as equal, so that
// a NaN in a gradient is sent on and seen, never hidden by being dropped.
#pragma once

#include <cmath>
#include <functional>

#include "compress/norms.h"
#include "compress/selector.h"

namespace buropt {

struct TopK {
  static constexpr const char* kName = "TopK";
  static constexpr bool kBlind = false;

  std::uint32_t k;

  void check(std::uint32_t d) const { check_k(kName, k, d); }
  std::uint32_t kept(std::uint32_t) const noexcept { return k; }
  double scale(std::uint32_t) const noexcept { return 1; }

  /// Selection in O(d): only entries at or above a floor, which a sample of a long row provides,
  /// can be among the k largest; of their magnitudes the k-th largest is found by partition.
  template <class T>
  Selection select(std::span<const T> x, std::uint32_t d, const Draw&, Scratch& scratch) const {
    if (k == d) return Selection::all(d);
    std::size_t n = collect(x, sampled_floor(x, scratch), scratch);
    if (n < k) n = collect(x, BitsOf<T>{0}, scratch);  // the sample misled us

    BitsOf<T>* magnitudes = scratch.template magnitudes<T>().data();
    std::nth_element(magnitudes, magnitudes + (k - 1), magnitudes + n, std::greater<>());
    const BitsOf<T> threshold = magnitudes[k - 1];
    std::uint32_t ties = k;  // how many entries equal to the threshold still fit
    for (std::uint32_t j = 0; j < k; ++j) ties -= magnitudes[j] > threshold;

    std::uint32_t* indices = scratch.indices.data();
    std::uint32_t n_kept = 0;
    for (std::size_t j = 0; j < n; ++j) {
      const BitsOf<T> size = magnitude(x[indices[j]]);
      const bool tie = size == threshold && ties > 0;
      indices[n_kept] = indices[j];
      n_kept += size > threshold || tie;
      ties -= tie;
    }
    return {indices, n_kept};
  }

  std::int64_t place_bits(std::uint32_t n_kept, std::uint32_t d) const noexcept {
    return std::int64_t{n_kept} * index_bits(d);
  }
  void write_places(const Selection& kept, std::uint32_t d, BitWriter& to) const {
    write_indices(kept, d, to);
  }
  std::optional<Selection> read_places(BitReader& from, std::uint32_t d, const Draw&,
                                       Scratch& scratch) const {
    return read_selection(from, k, d, scratch);
  }

 private:
  /// Puts indices and magnitudes of the entries at or above the floor at the front of the scratch
  /// memory, in the order of the indices; returns how many.
  template <class T>
  static std::size_t collect(std::span<const T> x, BitsOf<T> floor, Scratch& scratch) {
    std::uint32_t* indices = reserve(scratch.indices, x.size());
    BitsOf<T>* magnitudes = reserve(scratch.template magnitudes<T>(), x.size());
    std::size_t n = 0;
    for (std::size_t start = 0; start < x.size(); start += kBlock) {
      const std::size_t stop = std::min(start + kBlock, x.size());
      if (stop - start == kBlock && largest(x.data() + start) < floor) continue;
      for (std::size_t i = start; i < stop; ++i) {  // no branch: a store is free, a wrong guess not
        const BitsOf<T> size = magnitude(x[i]);
        indices[n] = static_cast<std::uint32_t>(i);
        magnitudes[n] = size;
        n += size >= floor;
      }
    }
    return n;
  }

  static constexpr std::size_t kBlock = 64;

  /// The largest magnitude of a block: a loop that compilers turn into vector instructions.
  template <class T>
  static BitsOf<T> largest(const T* block) noexcept {
    BitsOf<T> result = 0;
    for (std::size_t i = 0; i < kBlock; ++i) result = std::max(result, magnitude(block[i]));
    return result;
  }

  /// A magnitude that most likely at least k entries reach, and not many more. 0 for short rows.
  template <class T>
  BitsOf<T> sampled_floor(std::span<const T> x, Scratch& scratch) const {
    const std::size_t n = std::min<std::size_t>(x.size() / 8, 1024);
    const double share = static_cast<double>(k) / static_cast<double>(x.size());
    const double expected = share * static_cast<double>(n);
    const auto rank = static_cast<std::size_t>(expected + 4 * std::sqrt(expected) + 4);
    if (n < kBlock || rank >= n) return 0;
    BitsOf<T>* sample = reserve(scratch.template magnitudes<T>(), n);
    const std::size_t stride = x.size() / n;
    for (std::size_t j = 0; j < n; ++j) sample[j] = magnitude(x[j * stride]);
    std::nth_element(sample, sample + rank, sample + n, std::greater<>());
    return sample[rank];
  }
};

}  // namespace buropt
