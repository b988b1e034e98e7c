// The numbers of attention heads, a register's worth of heads at a time.
//
// A problem is one head of one sample. Its numbers are one lane of registers, so that no sum runs
// across lanes: arrays (T, width) of problems are arrays (T, width, lanes) here.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "math/rows.h"
#include "math/transpose.h"

namespace buropt {

struct AttentionShape {
  std::int64_t length;  ///< T
  std::int64_t heads;
  std::int64_t width;  ///< of a head
  bool causal;         ///< position t sees positions 0..t only

  std::int64_t columns() const noexcept { return heads * width; }
  std::int64_t keys(std::int64_t query) const noexcept { return causal ? query + 1 : length; }
  /// The first query that sees a key.
  std::int64_t first_query(std::int64_t key) const noexcept { return causal ? key : 0; }
  /// Pairs of a query before this one and a key that it sees.
  std::int64_t pairs_before(std::int64_t query) const noexcept {
    return causal ? query * (query + 1) / 2 : query * length;
  }
  /// Whether problems go into lanes: then everything a head needs stays in the second-level cache.
  bool in_lanes() const noexcept { return length * width <= 1024; }
  /// Numbers of a problem in the memory that its result and the cotangents come from: q, k, v and
  /// the weights.
  std::int64_t memory() const noexcept { return 3 * length * width + pairs_before(length); }
  /// Whether that is worth it: to read the weights takes less than to compute them again.
  bool remembers() const noexcept {
    return in_lanes() && pairs_before(length) <= 3 * length * width;
  }
  /// Queries whose weights are kept until the keys' cotangents take them.
  std::int64_t lane_queries() const noexcept {
    return std::clamp<std::int64_t>(1024 / std::max<std::int64_t>(length, 1), 1, 8);
  }
};

namespace detail {

/// kLanes rows of kPart numbers, one after another, as kPart registers: number i of every row in
/// register i, rows in a fixed order of their own. Shuffles stay within 128 bits, and are their own
/// inverse.
template <class T>
BUROPT_INLINE void rows_to_lanes(std::array<Lanes<T, Pack<T>::size>, kPart<T>>& rows) noexcept {
  constexpr auto kAll = std::make_index_sequence<Pack<T>::size>();
#pragma GCC unroll 2
  for (int round = 1; round < kPart<T>; round *= 2) {
    std::array<Lanes<T, Pack<T>::size>, kPart<T>> next;
#pragma GCC unroll 2
    for (std::size_t i = 0; i < kPart<T> / 2; ++i) {
      next[2 * i] = interleave<kPart<T>, 0>(rows[i], rows[i + kPart<T> / 2], kAll);
      next[2 * i + 1] = interleave<kPart<T>, 1>(rows[i], rows[i + kPart<T> / 2], kAll);
    }
    rows = next;
  }
}

/// Lane i: a[i] for i < middle, otherwise b[i].
template <class T>
BUROPT_INLINE Pack<T> load_joined(const T* a, const T* b, int middle) noexcept {
  using Lane = typename Pack<T>::Lane;
  alignas(BUROPT_VECTOR_BYTES) T lanes[Pack<T>::size];
  const Lane n = middle;
  BUROPT_VECTOR_LOOP
  for (Lane i = 0; i < Pack<T>::size; ++i) lanes[i] = i < n ? a[i] : b[i];
  return Pack<T>::load(lanes);
}
/// The other way round.
template <class T>
BUROPT_INLINE void store_joined(Pack<T> x, T* a, T* b, int middle) noexcept {
  using Lane = typename Pack<T>::Lane;
  alignas(BUROPT_VECTOR_BYTES) T lanes[Pack<T>::size];
  x.store(lanes);
  x.store_n(a, middle);
  const Lane n = middle;
  BUROPT_VECTOR_LOOP
  for (Lane i = 0; i < Pack<T>::size; ++i) {
    if (i >= n) b[i] = lanes[i];
  }
}

/// Problems first..first+count-1, one for each lane.
template <class T>
class HeadLanes {
 public:
  static constexpr int kLanes = Pack<T>::size;

  HeadLanes(const AttentionShape& shape, std::int64_t first, int count) noexcept
      : shape_(shape),
        count_(count),
        joins_(count == kLanes && shape.width == kPart<T> && shape.heads >= kLanes / kPart<T>) {
    for (int lane = 0; lane < count;) {
      const std::int64_t head = (first + lane) % shape.heads;
      const std::int64_t heads = std::min<std::int64_t>(shape.heads - head, count - lane);
      runs_[static_cast<std::size_t>(n_runs_++)] = {(first + lane) / shape.heads,
                                                    head * shape.width, heads * shape.width};
      lane += static_cast<int>(heads);
    }
    if (joins_) find_joins();
  }

  /// lanes (T, width, kLanes) = the heads' part of a matrix whose rows are `row` elements apart and
  /// whose samples are `sample` elements apart. `staged` has the size of `lanes`.
  void load(const T* from, std::int64_t row, std::int64_t sample, T* lanes,
            T* staged) const noexcept {
    const std::int64_t size = kLanes * shape_.width;
    if (joins_) {
      for (std::int64_t t = 0; t < shape_.length; ++t) {
        load_row(from + t * row, sample, lanes + t * size);
      }
      return;
    }
    if (count_ < kLanes) std::fill_n(staged, shape_.length * size, T(0));
    for_each_piece(row, sample, [&](std::int64_t place, std::int64_t at, std::int64_t n) {
      copy_columns(from + place, staged + at, n);
    });
    for (std::int64_t t = 0; t < shape_.length; ++t) {
      transpose(kLanes, shape_.width, staged + t * size, shape_.width, lanes + t * size, kLanes);
    }
  }
  void store(const T* lanes, T* to, std::int64_t row, std::int64_t sample,
             T* staged) const noexcept {
    const std::int64_t size = kLanes * shape_.width;
    if (joins_) {
      for (std::int64_t t = 0; t < shape_.length; ++t) {
        store_row(lanes + t * size, sample, to + t * row);
      }
      return;
    }
    for (std::int64_t t = 0; t < shape_.length; ++t) {
      transpose(shape_.width, kLanes, lanes + t * size, kLanes, staged + t * size, shape_.width);
    }
    for_each_piece(row, sample, [&](std::int64_t place, std::int64_t at, std::int64_t n) {
      copy_columns(staged + at, to + place, n);
    });
  }

 private:
  /// Heads of one sample.
  struct Run {
    std::int64_t sample;
    std::int64_t column;
    std::int64_t columns;
  };
  /// A register of numbers: of one sample in front of lane `middle`, and of another from there on.
  struct Join {
    std::array<std::int64_t, 2> sample;
    std::array<std::int64_t, 2> column;  ///< that lane 0 would have
    int middle;
  };

  /// Calls f(place in the matrix, place among the staged rows, number of elements).
  template <class F>
  BUROPT_INLINE void for_each_piece(std::int64_t row, std::int64_t sample, F&& f) const noexcept {
    std::int64_t at = 0;
    for (int r = 0; r < n_runs_; ++r) {
      const Run& run = runs_[static_cast<std::size_t>(r)];
      const std::int64_t place = run.sample * sample + run.column;
      for (std::int64_t t = 0; t < shape_.length; ++t) {
        f(place + t * row, at + t * kLanes * shape_.width, run.columns);
      }
      at += run.columns;
    }
  }

  /// As many heads as a register has parts belong to two samples at most.
  void find_joins() noexcept {
    std::size_t r = 0;
    std::int64_t begin = 0;  // of run r, among all columns
    for (std::size_t k = 0; k < kPart<T>; ++k) {
      const auto first = static_cast<std::int64_t>(k) * kLanes;
      while (begin + runs_[r].columns <= first) begin += runs_[r++].columns;
      const Run& a = runs_[r];
      const std::int64_t middle = std::min<std::int64_t>(kLanes, begin + a.columns - first);
      const Run& b = middle < kLanes ? runs_[r + 1] : a;
      joins_of_[k] = {{a.sample, b.sample},
                      {a.column + first - begin, b.column - middle},
                      static_cast<int>(middle)};
    }
  }

  /// (kLanes, kPart) to (kPart, kLanes), and back.
  BUROPT_INLINE void load_row(const T* from, std::int64_t sample, T* lanes) const noexcept {
    std::array<Lanes<T, kLanes>, kPart<T>> rows;
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kPart<T>; ++k) {
      const Join& join = joins_of_[k];
      rows[k] = load_joined(from + join.sample[0] * sample + join.column[0],
                            from + join.sample[1] * sample + join.column[1], join.middle)
                    .v;
    }
    rows_to_lanes<T>(rows);
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kPart<T>; ++k) {
      store_lanes<T, kLanes>(lanes + k * kLanes, rows[k]);
    }
  }
  BUROPT_INLINE void store_row(const T* lanes, std::int64_t sample, T* to) const noexcept {
    std::array<Lanes<T, kLanes>, kPart<T>> rows;
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kPart<T>; ++k) {
      rows[k] = load_lanes<T, kLanes>(lanes + k * kLanes);
    }
    rows_to_lanes<T>(rows);
#pragma GCC unroll 4
    for (std::size_t k = 0; k < kPart<T>; ++k) {
      const Join& join = joins_of_[k];
      store_joined(Pack<T>::wrap(rows[k]), to + join.sample[0] * sample + join.column[0],
                   to + join.sample[1] * sample + join.column[1], join.middle);
    }
  }

  AttentionShape shape_;
  int count_;
  int n_runs_ = 0;
  std::array<Run, kLanes> runs_;
  /// Rows are taken together in registers, without staging; lanes are in an order of their own.
  bool joins_;
  std::array<Join, kPart<T>> joins_of_;
};

}  // namespace detail

}  // namespace buropt
