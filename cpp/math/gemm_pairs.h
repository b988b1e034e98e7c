// A register block of gemm whose last columns fill half a register: the halves of two rows share
// one.
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

}  // namespace buropt::detail
