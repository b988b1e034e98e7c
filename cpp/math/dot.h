// Dot products and sums of contiguous numbers.
//
// Order of summation, a function of n alone: the whole registers of the input are cut into blocks
// of kDotBlock registers. A block is summed lane by lane in kDotChains chains (register q goes to
// chain q mod kDotChains), the chains are added in pairs, and blocks are added in pairs, so
// rounding errors grow with log n. At last the lanes are folded in halves; numbers left over at the
// end of the input join the fold where their count fits. Several rows at once have the bits of one.
#pragma once

#include <array>
#include <cstdint>
#include <utility>

#include "math/lanes.h"

namespace buropt {

namespace detail {

inline constexpr int kDotChains = 4;
inline constexpr std::int64_t kDotBlock = 16 * kDotChains;

/// The lanes of kRows sums.
template <class T, int kRows>
using LaneSums = std::array<Lanes<T, Pack<T>::size>, static_cast<std::size_t>(kRows)>;

// sums += register q of every row, times that of x if it is given.
template <bool has_x, class T, int kRows>
BUROPT_INLINE void add_register(const std::array<const T*, kRows>& rows, const T* x, std::int64_t q,
                                LaneSums<T, kRows>& sums) noexcept {
  constexpr int kLanes = Pack<T>::size;
  if constexpr (has_x) {
    const Lanes<T, kLanes> factor = load_lanes<T, kLanes>(x + q * kLanes);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kRows; ++i) {
      sums[i] = multiply_add(load_lanes<T, kLanes>(rows[i] + q * kLanes), factor, sums[i]);
    }
  } else {
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kRows; ++i) sums[i] += load_lanes<T, kLanes>(rows[i] + q * kLanes);
  }
}

// Registers [begin, end), at most kDotBlock.
template <bool has_x, class T, int kRows>
BUROPT_INLINE LaneSums<T, kRows> sum_block(const std::array<const T*, kRows>& rows, const T* x,
                                           std::int64_t begin, std::int64_t end) noexcept {
  LaneSums<T, kRows> chains[kDotChains] = {};
  std::int64_t q = begin;
  for (; q + kDotChains <= end; q += kDotChains) {
#pragma GCC unroll 4
    for (int c = 0; c < kDotChains; ++c) add_register<has_x, T, kRows>(rows, x, q + c, chains[c]);
  }
#pragma GCC unroll 3
  for (int c = 0; c < kDotChains - 1; ++c) {
    if (q + c < end) add_register<has_x, T, kRows>(rows, x, q + c, chains[c]);
  }
  LaneSums<T, kRows> total;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kRows; ++i) {
    total[i] = (chains[0][i] + chains[1][i]) + (chains[2][i] + chains[3][i]);
  }
  return total;
}

template <bool has_x, class T, int kRows>
LaneSums<T, kRows> sum_pairwise(const std::array<const T*, kRows>& rows, const T* x,
                                std::int64_t begin, std::int64_t end) noexcept {
  if (end - begin <= kDotBlock) return sum_block<has_x, T, kRows>(rows, x, begin, end);
  const std::int64_t blocks = ceil_div(end - begin, kDotBlock);
  const std::int64_t middle = begin + blocks / 2 * kDotBlock;
  LaneSums<T, kRows> total = sum_pairwise<has_x, T, kRows>(rows, x, begin, middle);
  const LaneSums<T, kRows> rest = sum_pairwise<has_x, T, kRows>(rows, x, middle, end);
  for (std::size_t i = 0; i < kRows; ++i) total[i] += rest[i];
  return total;
}

template <int begin, class V, std::size_t... i>
BUROPT_INLINE auto part_of(V v, std::index_sequence<i...>) noexcept {
  return __builtin_shufflevector(v, v, (begin + static_cast<int>(i))...);
}

// The sum of all lanes and of the first n mod kLanes terms at row (times x).
template <bool has_x, class T, int kLanes>
BUROPT_INLINE T fold(Lanes<T, kLanes> sum, const T* row, const T* x, std::int64_t n) noexcept {
  if constexpr (kLanes == 1) {
    return sum;
  } else {
    constexpr int kHalf = kLanes / 2;
    Lanes<T, kHalf> half;
    if constexpr (kHalf == 1) {
      half = sum[0] + sum[1];
    } else {
      constexpr auto kIndices = std::make_index_sequence<kHalf>();
      half = part_of<0>(sum, kIndices) + part_of<kHalf>(sum, kIndices);
    }
    if (n & kHalf) {
      if constexpr (has_x) {
        half = multiply_add(load_lanes<T, kHalf>(row), load_lanes<T, kHalf>(x), half);
        x += kHalf;
      } else {
        half += load_lanes<T, kHalf>(row);
      }
      row += kHalf;
    }
    return fold<has_x, T, kHalf>(half, row, x, n);
  }
}

/// Sums of n terms of each row: out[i] = sum_j rows[i][j] * x[j], or sum_j rows[i][j].
template <bool has_x, class T, int kRows>
BUROPT_INLINE std::array<T, kRows> sum_rows(const std::array<const T*, kRows>& rows, const T* x,
                                            std::int64_t n) noexcept {
  constexpr int kLanes = Pack<T>::size;
  const std::int64_t whole = n / kLanes;
  const LaneSums<T, kRows> sums = sum_pairwise<has_x, T, kRows>(rows, x, 0, whole);
  std::array<T, kRows> out;
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kRows; ++i) {
    const T* rest = has_x ? x + whole * kLanes : nullptr;
    out[i] = fold<has_x, T, kLanes>(sums[i], rows[i] + whole * kLanes, rest, n);
  }
  return out;
}

}  // namespace detail

/// sum_j x[j] * y[j], j < n.
template <class T>
T dot(const T* x, const T* y, std::int64_t n) noexcept {
  return detail::sum_rows<true, T, 1>({x}, y, n)[0];
}

/// sum_j x[j], j < n.
template <class T>
T sum(const T* x, std::int64_t n) noexcept {
  return detail::sum_rows<false, T, 1>({x}, nullptr, n)[0];
}

}  // namespace buropt
