// PermK (Szlendak, Tyurin and Richtarik, arXiv:2110.03300): the workers share out the coordinates
// by one random permutation, so that their mean is exact when they agree. Also where one of n and d
// does not divide the other.
//
// d >= n: the permuted coordinates are cut in n parts whose sizes differ by at most 1, and it is
// drawn who takes the longer ones: every coordinate goes to one worker, each with probability 1/n.
// Worker i sends n x on its part.
// d < n: every worker takes one coordinate; each is taken by floor(n/d) or ceil(n/d) workers, and
// it is drawn which by how many. Worker i sends d x on its coordinate.
#pragma once

#include <numeric>

#include "compress/selector.h"

namespace buropt {

struct PermK {
  static constexpr const char* kName = "PermK";
  static constexpr bool kBlind = true;

  std::uint32_t n_workers;

  void check(std::uint32_t) const noexcept {}
  std::uint32_t kept(std::uint32_t d) const noexcept { return (d - 1) / n_workers + 1; }
  double scale(std::uint32_t d) const noexcept { return std::min(n_workers, d); }

  template <class T>
  Selection select(std::span<const T>, std::uint32_t d, const Draw& draw, Scratch& scratch) const {
    if (scratch.assignment_end.empty()) assign(d, draw, scratch);
    const std::uint32_t* ends = scratch.assignment_end.data();
    const std::uint32_t begin = draw.worker == 0 ? 0 : ends[draw.worker - 1];
    return {scratch.assignment.data() + begin, ends[draw.worker] - begin};
  }

  std::int64_t place_bits(std::uint32_t, std::uint32_t) const noexcept { return 0; }
  void write_places(const Selection&, std::uint32_t, BitWriter&) const noexcept {}
  std::optional<Selection> read_places(BitReader&, std::uint32_t d, const Draw& draw,
                                       Scratch& scratch) const {
    return select(std::span<const float>(), d, draw, scratch);
  }

 private:
  /// Puts the coordinates of all workers, one after the other, in scratch.assignment: coordinate j
  /// mod d goes to worker j mod n, both in random order, for j below max(n, d).
  void assign(std::uint32_t d, const Draw& draw, Scratch& scratch) const {
    RandomStream stream = draw.common_stream();
    const std::vector<std::uint32_t> coordinates = shuffled(d, stream);
    const std::vector<std::uint32_t> workers = shuffled(n_workers, stream);
    std::vector<std::uint32_t>& ends = scratch.assignment_end;
    ends.assign(n_workers, 0);
    if (d <= n_workers) {
      std::uint32_t* assignment = reserve(scratch.assignment, n_workers);
      for (std::uint32_t j = 0; j < n_workers; ++j) assignment[workers[j]] = coordinates[j % d];
      std::iota(ends.begin(), ends.end(), 1u);
      return;
    }
    std::vector<std::uint32_t> owner(d);
    for (std::uint32_t j = 0; j < d; ++j) {
      const std::uint32_t worker = workers[j % n_workers];
      owner[coordinates[j]] = worker;
      ++ends[worker];
    }
    std::exclusive_scan(ends.begin(), ends.end(), ends.begin(), 0u);
    std::uint32_t* assignment = reserve(scratch.assignment, d);
    for (std::uint32_t i = 0; i < d; ++i) assignment[ends[owner[i]]++] = i;
  }

  /// 0, ..., n - 1 in random order: Fisher and Yates.
  static std::vector<std::uint32_t> shuffled(std::uint32_t n, RandomStream& stream) {
    std::vector<std::uint32_t> result(n);
    std::iota(result.begin(), result.end(), 0u);
    for (std::uint32_t j = n; j > 1; --j) std::swap(result[j - 1], result[stream.below(j)]);
    return result;
  }
};

}  // namespace buropt
