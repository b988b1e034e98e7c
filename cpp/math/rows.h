// Rows of a matrix, a register's worth at a time: for kernels that normalize along the last axis.
//
// A group is as many rows as a register has lanes. Each row is reduced to the lanes of one register
// (column i goes to lane i mod lanes), and the registers of a group are folded together into one
// that holds row r's result in lane r: a third of the shuffles that folding each by itself takes,
// and what is done once for a row (a logarithm, a square root) is done for the group at once. A
// row's order of summation depends on its length alone, not on its place in a group.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <utility>

#include "math/lanes.h"

namespace buropt {

/// The lanes' own numbers.
template <class T>
BUROPT_INLINE Pack<typename Pack<T>::Lane> lane_numbers() noexcept {
  Pack<typename Pack<T>::Lane> lane;
  for (int i = 0; i < Pack<T>::size; ++i) lane.v[i] = i;
  return lane;
}
/// Lanes 0..n-1.
template <class T>
BUROPT_INLINE Mask<T> first_lanes(int n) noexcept {
  return lane_numbers<T>() < Pack<typename Pack<T>::Lane>(n);
}

/// Columns i, i + 1, ... of a row, as many as a register holds.
template <class T>
struct WholeColumns {
  std::int64_t i;

  BUROPT_INLINE Pack<T> load(const T* row, T = T(0)) const noexcept {
    return Pack<T>::load(row + i);
  }
  BUROPT_INLINE void store(T* row, Pack<T> x) const noexcept { x.store(row + i); }
  /// x, with `other` in lanes that stand for no column.
  BUROPT_INLINE Pack<T> within(Pack<T> x, T = T(0)) const noexcept { return x; }
};

/// The last columns of a row that fill exactly half a register: they need no mask.
template <class T>
struct HalfColumns {
  static constexpr int n = Pack<T>::size / 2;

  std::int64_t i;

  BUROPT_INLINE Pack<T> load(const T* row, T fill = T(0)) const noexcept {
    return widened(load_lanes<T, n>(row + i), fill, std::make_index_sequence<Pack<T>::size>());
  }
  BUROPT_INLINE void store(T* row, Pack<T> x) const noexcept {
    store_lanes<T, n>(row + i, lower(x, std::make_index_sequence<n>()));
  }
  BUROPT_INLINE Pack<T> within(Pack<T> x, T other = T(0)) const noexcept {
    return widened(lower(x, std::make_index_sequence<n>()), other,
                   std::make_index_sequence<Pack<T>::size>());
  }

 private:
  template <std::size_t... lane>
  BUROPT_INLINE static Lanes<T, n> lower(Pack<T> x, std::index_sequence<lane...>) noexcept {
    return __builtin_shufflevector(x.v, x.v, lane...);
  }
  template <std::size_t... lane>
  BUROPT_INLINE static Pack<T> widened(Lanes<T, n> x, T fill,
                                       std::index_sequence<lane...>) noexcept {
    return Pack<T>::wrap(__builtin_shufflevector(x, Lanes<T, n>{} + fill, lane...));
  }
};

/// The last columns of a row, fewer than a register holds.
template <class T>
struct LastColumns {
  std::int64_t i;
  int n;

  BUROPT_INLINE Pack<T> load(const T* row, T fill = T(0)) const noexcept {
    return Pack<T>::load_n(row + i, n, fill);
  }
  BUROPT_INLINE void store(T* row, Pack<T> x) const noexcept { x.store_n(row + i, n); }
  BUROPT_INLINE Pack<T> within(Pack<T> x, T other = T(0)) const noexcept {
    return select(first_lanes<T>(n), x, Pack<T>(other));
  }
};

/// Calls f(columns) for n columns from left to right.
template <class T, class F>
BUROPT_INLINE void for_each_columns(std::int64_t n, F&& f) noexcept {
  constexpr int kLanes = Pack<T>::size;
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(WholeColumns<T>{i});
  if (n - i == kLanes / 2) return f(HalfColumns<T>{i});
  if (i < n) f(LastColumns<T>{i, static_cast<int>(n - i)});
}

/// to[0..n) = from[0..n), which do not overlap: for short rows, for which a call of memcpy takes
/// long.
template <class T>
BUROPT_INLINE void copy_columns(const T* from, T* to, std::int64_t n) noexcept {
  constexpr std::int64_t kLanes = Pack<T>::size;
  if (n < kLanes) {
    const LastColumns<T> all{0, static_cast<int>(n)};
    return all.store(to, all.load(from));
  }
  // The last register ends at the edge, so none needs a mask.
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const std::int64_t at = std::min(i, n - kLanes);
    Pack<T>::load(from + at).store(to + at);
  }
}

namespace detail {

// Halves of the segments (of `segment` lanes) of a and then b: the lower ones, or the upper ones.
template <int segment, int upper, class V, std::size_t... lane>
BUROPT_INLINE V segment_halves(V a, V b, std::index_sequence<lane...>) noexcept {
  constexpr int half = segment / 2;
  return __builtin_shufflevector(
      a, b,
      (static_cast<int>(lane) / half * segment + static_cast<int>(lane) % half + upper * half)...);
}

template <int segment, class T, class Combine>
BUROPT_INLINE Pack<T> fold_segments(Pack<T>* rows, Combine combine) noexcept {
  if constexpr (segment == 1) {
    return rows[0];
  } else {
    constexpr auto kLanes = std::make_index_sequence<Pack<T>::size>();
#pragma GCC unroll 8
    for (int r = 0; r < segment / 2; ++r) {
      const auto a = rows[2 * r].v;
      const auto b = rows[2 * r + 1].v;
      rows[r] = combine(Pack<T>::wrap(segment_halves<segment, 0>(a, b, kLanes)),
                        Pack<T>::wrap(segment_halves<segment, 1>(a, b, kLanes)));
    }
    return fold_segments<segment / 2, T>(rows, combine);
  }
}

}  // namespace detail

struct Plus {
  template <class T>
  BUROPT_INLINE T operator()(T a, T b) const noexcept {
    return a + b;
  }
};
struct Larger {
  /// Also for the narrower vectors that a register is folded to.
  template <class T>
  BUROPT_INLINE T operator()(T a, T b) const noexcept {
    if constexpr (requires { maximum(a, b); })
      return maximum(a, b);
    else
      return a != a ? a : (a > b ? a : b);
  }
};

/// One register for each row of a group; `folded` puts row r's result into lane r.
template <class T>
struct RowGroup {
  Pack<T> rows[Pack<T>::size];

  BUROPT_INLINE explicit RowGroup(T value) noexcept {
#pragma GCC unroll 16
    for (Pack<T>& row : rows) row = Pack<T>(value);
  }
  BUROPT_INLINE Pack<T>& operator[](int r) noexcept { return rows[r]; }

  /// Uses the registers up.
  template <class Combine>
  BUROPT_INLINE Pack<T> folded(Combine combine) noexcept {
    return detail::fold_segments<Pack<T>::size, T>(rows, combine);
  }
};

/// For every row of a group the combination over n columns of term(r, columns), from `start` on:
/// row r's in lane r.
template <class T, class Combine, class Term>
BUROPT_INLINE Pack<T> fold_group(std::int64_t n, T start, Combine combine, Term term) noexcept {
  RowGroup<T> rows(start);
  for_each_columns<T>(n, [&](auto at) {
#pragma GCC unroll 16
    for (int r = 0; r < Pack<T>::size; ++r) rows[r] = combine(rows[r], term(r, at));
  });
  return rows.folded(combine);
}
template <class T, class Term>
BUROPT_INLINE Pack<T> group_sums(std::int64_t n, Term term) noexcept {
  return fold_group(n, T(0), Plus(), term);
}

/// Lane r of a register, as a number.
template <class T>
struct RowValues {
  alignas(BUROPT_VECTOR_BYTES) T values[Pack<T>::size];

  BUROPT_INLINE explicit RowValues(Pack<T> lanes) noexcept { lanes.store(values); }
  template <std::invocable<int> F>
  BUROPT_INLINE explicit RowValues(F value) noexcept {
    for (int r = 0; r < Pack<T>::size; ++r) values[r] = value(r);
  }
  BUROPT_INLINE T operator[](int r) const noexcept { return values[r]; }
};

}  // namespace buropt
