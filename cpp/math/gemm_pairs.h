// Register blocks of gemm for columns that end with half a register. Where the columns of A lie
// contiguous, the halves of two rows share one. Where its rows do, and they are several, even and
// odd p share every register.
#pragma once

#include <cstdint>
#include <cstring>
#include <utility>

#include "math/gemm_micro.h"

namespace buropt::detail {

/// Whether blocks of kGemmRows rows and this kind of strip exist in this form. It takes pairs of
/// numbers of A by loads of 64 bits.
template <class T, class Strip>
inline constexpr bool kHasPairs =
    kRegisters == 32 && sizeof(T) == 4 && Strip::kLanes == Pack<T>::size && Strip::kPacks >= 2 &&
    Strip::kPacks <= gemm_packs(kGemmRows);

/// Whether it serves here: the columns of A lie contiguous, and the last vector is exactly half
/// full.
template <class T, class Strip>
BUROPT_INLINE bool takes_pairs(const GemmBlock<T>& block, Strip strip) noexcept {
  return block.a_row == 1 && strip.width == strip.offset(Strip::kPacks - 2) + 3 * Strip::kLanes / 2;
}

// Lanes v0 v0 v1 v1 ...
template <class V, std::size_t... i>
BUROPT_INLINE auto twice(V v, std::index_sequence<i...>) noexcept {
  return __builtin_shufflevector(v, v, (i / 2)...);
}

// Lanes v0 v2 v4 ... (row = 0) or v1 v3 v5 ... (row = 1).
template <std::size_t row, class V, std::size_t... i>
BUROPT_INLINE auto lanes_of_row(V v, std::index_sequence<i...>) noexcept {
  return __builtin_shufflevector(v, v, (2 * i + row)...);
}

// p[0] p[1] p[0] p[1] ...
template <class T>
BUROPT_INLINE Lanes<T, Pack<T>::size> spread_pair(const T* p) noexcept {
  double both;
  std::memcpy(&both, p, sizeof(both));
  return __builtin_bit_cast(Lanes<T, Pack<T>::size>, Pack<double>(both).v);
}

/// gemm_block of kGemmRows rows and kPacks vectors and a half: an element is the same chain of
/// multiply-adds.
template <class T, int kPacks>
[[gnu::noinline]] void gemm_pair_block(const GemmBlock<T>& block) noexcept {
  constexpr int kLanes = Pack<T>::size;
  constexpr int kHalf = kLanes / 2;
  constexpr auto kAll = std::make_index_sequence<kLanes>();
  constexpr auto kHalfOfAll = std::make_index_sequence<kHalf>();
  using V = Lanes<T, kLanes>;
  V sum[kGemmRows][kPacks] = {};
  V pair[kGemmRows / 2] = {};
  const T* a = block.a;
  const T* pairs = block.a;
  // Clang would take the single numbers out of the pairs, with shuffles, if it knew what it reads.
  asm("" : "+r"(pairs));
  const T* b = block.b;
  for (std::int64_t p = block.k; p > 0; --p) {
    V row[kPacks];
#pragma GCC unroll 8
    for (int q = 0; q < kPacks; ++q) row[q] = load_lanes<T, kLanes>(b + q * kLanes);
    const V rest = twice(load_lanes<T, kHalf>(b + kPacks * kLanes), kAll);
#pragma GCC unroll 8
    for (int i = 0; i < kGemmRows; ++i) {
#pragma GCC unroll 8
      for (int q = 0; q < kPacks; ++q) sum[i][q] = multiply_add(row[q], a[i], sum[i][q]);
      if (i % 2 == 0) pair[i / 2] = multiply_add(rest, spread_pair(pairs + i), pair[i / 2]);
    }
    a += block.a_col;
    pairs += block.a_col;
    b += block.ldb;
  }
  Lanes<T, kHalf> last[kGemmRows][1];
#pragma GCC unroll 8
  for (int i = 0; i < kGemmRows; i += 2) {
    last[i][0] = lanes_of_row<0>(pair[i / 2], kHalfOfAll);
    last[i + 1][0] = lanes_of_row<1>(pair[i / 2], kHalfOfAll);
  }
  store_block<T, kGemmRows>(sum, block.to, Strip<kLanes, kPacks>{0, kPacks * kLanes});
  store_block<T, kGemmRows>(last, block.to.from_column(kPacks * kLanes), Strip<kHalf, 1>{0, kHalf});
}

// Lanes of a where they are even, of b where they are odd.
template <class V, std::size_t... i>
BUROPT_INLINE V alternate(V a, V b, std::index_sequence<i...>) noexcept {
  constexpr std::size_t n = sizeof...(i);
  return __builtin_shufflevector(a, b, (i + i % 2 * n)...);
}
// Lanes v1 v0 v3 v2 ...
template <class V, std::size_t... i>
BUROPT_INLINE V swap_neighbours(V v, std::index_sequence<i...>) noexcept {
  return __builtin_shufflevector(v, v, (i ^ 1)...);
}
// Lanes a0 b0 a1 b1 ... of two halves of a register.
template <class T, std::size_t... i>
BUROPT_INLINE Lanes<T, Pack<T>::size> interleave_halves(Lanes<T, Pack<T>::size / 2> a,
                                                        Lanes<T, Pack<T>::size / 2> b,
                                                        std::index_sequence<i...>) noexcept {
  constexpr std::size_t n = Pack<T>::size / 2;
  return __builtin_shufflevector(a, b, (i / 2 + i % 2 * n)...);
}

/// Columns of a strip of 2 or 3 registers in which even and odd p alternate.
template <class T, int kPacks>
inline constexpr int kPairedColumns = kPacks * Pack<T>::size / 2;

/// panel (k / 2 rounded up, kPacks registers): columns of B with even and odd p side by side; in
/// front those of even columns and then those of odd ones, and a third register with the columns
/// that follow. Beyond an odd k there are zeros.
template <class T, int kPacks>
void interleave_rows(std::int64_t k, const T* b, std::int64_t ldb, T* panel) noexcept {
  constexpr int kLanes = Pack<T>::size;
  constexpr auto kAll = std::make_index_sequence<kLanes>();
  using V = Lanes<T, kLanes>;
  using Half = Lanes<T, kLanes / 2>;
  for (; k > 0; k -= 2, b += 2 * ldb, panel += kPacks * kLanes) {
    const V even = load_lanes<T, kLanes>(b);
    const V odd = k > 1 ? load_lanes<T, kLanes>(b + ldb) : V{};
    store_lanes<T, kLanes>(panel, alternate(even, swap_neighbours(odd, kAll), kAll));
    store_lanes<T, kLanes>(panel + kLanes, alternate(swap_neighbours(even, kAll), odd, kAll));
    if constexpr (kPacks == 3) {
      const Half even_rest = load_lanes<T, kLanes / 2>(b + kLanes);
      const Half odd_rest = k > 1 ? load_lanes<T, kLanes / 2>(b + ldb + kLanes) : Half{};
      store_lanes<T, kLanes>(panel + 2 * kLanes, interleave_halves<T>(even_rest, odd_rest, kAll));
    }
  }
}

/// C (kRows, kPairedColumns) of a panel by interleave_rows: the sum over even p plus that over odd
/// p.
template <class T, int kRows, int kPacks>
[[gnu::noinline]] void gemm_paired_block(const GemmBlock<T>& block) noexcept {
  constexpr int kLanes = Pack<T>::size;
  constexpr auto kAll = std::make_index_sequence<kLanes>();
  constexpr auto kHalf = std::make_index_sequence<kLanes / 2>();
  using V = Lanes<T, kLanes>;
  V sum[kRows][kPacks] = {};
  const T* a = block.a;
  const T* b = block.b;
  const std::int64_t a_row = block.a_row;
  std::int64_t left = block.k;
  for (; left > 1; left -= 2, a += 2, b += kPacks * kLanes) {
    V row[kPacks];
#pragma GCC unroll 4
    for (int q = 0; q < kPacks; ++q) row[q] = load_lanes<T, kLanes>(b + q * kLanes);
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const V factor = spread_pair(a + i * a_row);
#pragma GCC unroll 4
      for (int q = 0; q < kPacks; ++q) sum[i][q] = multiply_add(row[q], factor, sum[i][q]);
    }
  }
  V total[kRows][1];
  Lanes<T, kLanes / 2> rest[kRows][1];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    if (left > 0) {  // the last p is even; what stands for an odd one is not to meet infinities
#pragma GCC unroll 4
      for (int q = 0; q < kPacks; ++q) {
        const V more = multiply_add(load_lanes<T, kLanes>(b + q * kLanes), a[i * a_row], sum[i][q]);
        sum[i][q] = alternate(more, sum[i][q], kAll);
      }
    }
    const V crossed = alternate(sum[i][1], sum[i][0], kAll);
    total[i][0] = alternate(sum[i][0], sum[i][1], kAll) + swap_neighbours(crossed, kAll);
    if constexpr (kPacks == 3) {
      rest[i][0] = lanes_of_row<0>(sum[i][2], kHalf) + lanes_of_row<1>(sum[i][2], kHalf);
    }
  }
  store_block<T, kRows>(total, block.to, Strip<kLanes, 1>{0, kLanes});
  if constexpr (kPacks == 3) {
    store_block<T, kRows>(rest, block.to.from_column(kLanes), Strip<kLanes / 2, 1>{0, kLanes / 2});
  }
}

}  // namespace buropt::detail
