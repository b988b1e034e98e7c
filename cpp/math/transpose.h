// Blocked transposition in registers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "math/lanes.h"

namespace buropt {

namespace detail {

/// Numbers in 128 bits. Shuffles within such parts of a register are cheap and shuffles across them
/// are not; and registers of more than two parts have fewer units that shuffle.
template <class T>
inline constexpr int kPart = 16 / static_cast<int>(sizeof(T));

// In each part, lanes a0 b0 a1 b1 ... of its lower (high = 0) or upper (high = 1) halves in a, b.
template <std::size_t part, std::size_t high, class V, std::size_t... i>
BUROPT_INLINE V interleave(V a, V b, std::index_sequence<i...>) noexcept {
  constexpr std::size_t n = sizeof...(i);
  return __builtin_shufflevector(
      a, b, (i / part * part + high * part / 2 + i % part / 2 + (i % 2) * n)...);
}

// The lower half of a and the upper half of b.
template <class V, std::size_t... i>
BUROPT_INLINE V halves(V a, V b, std::index_sequence<i...>) noexcept {
  constexpr V upper = {(i < sizeof...(i) / 2 ? 0 : -1)...};
  return upper ? b : a;
}

// kPart numbers at p and, in the upper part of a wider register, those kPart rows below. Each comes
// with a neighbour that is dropped; it lies between the first and the last number of the block.
template <class T, int kLanes>
BUROPT_INLINE Lanes<T, kLanes> load_parts(const T* p, [[maybe_unused]] std::int64_t row) noexcept {
  const Lanes<T, kLanes> first = load_lanes<T, kLanes>(p);
  if constexpr (kLanes == kPart<T>) {
    return first;
  } else {
    const Lanes<T, kLanes> second = load_lanes<T, kLanes>(p + kPart<T> * row - kPart<T>);
    return halves(first, second, std::make_index_sequence<kLanes>());
  }
}

// out (kPart, kLanes) = in (kLanes, kPart)^T. Every round interleaves the upper half of the rows
// with the lower one; that rotates the bits of an element's (row, column) address by one place.
template <class T, int kLanes>
BUROPT_INLINE void transpose_block(const T* in, std::int64_t in_row, T* out,
                                   std::int64_t out_row) noexcept {
  constexpr int kRows = kPart<T>;
  constexpr auto kAll = std::make_index_sequence<kLanes>();
  using V = Lanes<T, kLanes>;
  V rows[kRows];
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) rows[i] = load_parts<T, kLanes>(in + i * in_row, in_row);
#pragma GCC unroll 2
  for (int round = 1; round < kRows; round *= 2) {
    V next[kRows];
#pragma GCC unroll 2
    for (int i = 0; i < kRows / 2; ++i) {
      next[2 * i] = interleave<kRows, 0>(rows[i], rows[i + kRows / 2], kAll);
      next[2 * i + 1] = interleave<kRows, 1>(rows[i], rows[i + kRows / 2], kAll);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kRows; ++i) rows[i] = next[i];
  }
#pragma GCC unroll 4
  for (int i = 0; i < kRows; ++i) store_lanes<T, kLanes>(out + i * out_row, rows[i]);
}

// out (n, kLanes) = in (kLanes, n)^T. The last block is moved back to end at the edge; it copies
// some elements twice.
template <class T, int kLanes>
BUROPT_INLINE void transpose_rows(std::int64_t n, const T* in, std::int64_t in_row, T* out,
                                  std::int64_t out_row) noexcept {
  for (std::int64_t j = kPart<T>; j <= n; j += kPart<T>) {
    transpose_block<T, kLanes>(in, in_row, out, out_row);
    in += kPart<T>;
    out += kPart<T> * out_row;
  }
  const std::int64_t back = kPart<T> - n % kPart<T>;
  if (back < kPart<T>) transpose_block<T, kLanes>(in - back, in_row, out - back * out_row, out_row);
}

// As integers, which more units shuffle than floats.
template <class T>
void transpose_integers(std::int64_t m, std::int64_t n, const T* in, std::int64_t in_row, T* out,
                        std::int64_t out_row) noexcept {
  constexpr int kRows = kPart<T>;
  constexpr int kLanes = std::min(Pack<T>::size, 2 * kRows);
  if (std::min(m, n) < kRows) {
    for (std::int64_t i = 0; i < m; ++i) {
      for (std::int64_t j = 0; j < n; ++j) out[j * out_row + i] = in[i * in_row + j];
    }
    return;
  }
  std::int64_t i = 0;
  for (; i + kLanes <= m; i += kLanes) {
    transpose_rows<T, kLanes>(n, in + i * in_row, in_row, out + i, out_row);
  }
  for (; i < m; i += kRows) {
    const std::int64_t at = std::min(i, m - kRows);
    transpose_rows<T, kRows>(n, in + at * in_row, in_row, out + at, out_row);
  }
}

}  // namespace detail

/// out (n, m) = in (m, n)^T; rows are in_row and out_row elements apart, and do not overlap. What
/// lies between the rows of `in` may be read.
template <class T>
void transpose(std::int64_t m, std::int64_t n, const T* in, std::int64_t in_row, T* out,
               std::int64_t out_row) noexcept {
  using Integer = typename Pack<T>::Lane;
  detail::transpose_integers(m, n, reinterpret_cast<const Integer*>(in), in_row,
                             reinterpret_cast<Integer*>(out), out_row);
}

}  // namespace buropt
