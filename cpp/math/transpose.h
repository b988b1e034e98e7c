// Blocked transposition in registers.
#pragma once

#include <cstdint>
#include <utility>

#include "math/lanes.h"

namespace buropt {

namespace detail {

// Lanes a0 b0 a1 b1 ... of the lower (high = 0) or upper (high = 1) halves of a and b.
template <int high, class V, std::size_t... i>
BUROPT_INLINE V interleave(V a, V b, std::index_sequence<i...>) noexcept {
  constexpr std::size_t n = sizeof...(i);
  return __builtin_shufflevector(a, b, (high * n / 2 + i / 2 + (i % 2) * n)...);
}

// out (kLanes, kLanes) = in^T. Every round interleaves the upper half of the rows with the lower
// one; that rotates the bits of an element's (row, column) address by one place.
template <class T, int kLanes>
BUROPT_INLINE void transpose_block(const T* in, std::int64_t in_row, T* out,
                                   std::int64_t out_row) noexcept {
  constexpr auto kAll = std::make_index_sequence<kLanes>();
  using V = Lanes<T, kLanes>;
  V rows[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) rows[i] = load_lanes<T, kLanes>(in + i * in_row);
#pragma GCC unroll 4
  for (int round = 1; round < kLanes; round *= 2) {
    V next[kLanes];
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      next[2 * i] = interleave<0>(rows[i], rows[i + kLanes / 2], kAll);
      next[2 * i + 1] = interleave<1>(rows[i], rows[i + kLanes / 2], kAll);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) store_lanes<T, kLanes>(out + i * out_row, rows[i]);
}

template <class T, int kLanes>
void transpose_by(std::int64_t m, std::int64_t n, const T* in, std::int64_t in_row, T* out,
                  std::int64_t out_row) noexcept {
  if constexpr (kLanes > 1) {
    if (std::min(m, n) < kLanes) {
      return transpose_by<T, kLanes / 2>(m, n, in, in_row, out, out_row);
    }
    // The last blocks are moved back to end at the edge; they copy some elements twice.
    for (std::int64_t i = 0; i < m; i += kLanes) {
      const std::int64_t row = std::min(i, m - kLanes);
      for (std::int64_t j = 0; j < n; j += kLanes) {
        const std::int64_t col = std::min(j, n - kLanes);
        transpose_block<T, kLanes>(in + row * in_row + col, in_row, out + col * out_row + row,
                                   out_row);
      }
    }
  } else {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) out[j * out_row + i] = in[i * in_row + j];
    }
  }
}

}  // namespace detail

/// out (n, m) = in (m, n)^T; rows are in_row and out_row elements apart, and do not overlap.
template <class T>
void transpose(std::int64_t m, std::int64_t n, const T* in, std::int64_t in_row, T* out,
               std::int64_t out_row) noexcept {
  detail::transpose_by<T, Pack<T>::size>(m, n, in, in_row, out, out_row);
}

}  // namespace buropt
