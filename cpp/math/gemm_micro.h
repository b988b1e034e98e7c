// The register-blocked kernel of gemm: a few rows of C times a strip of columns.
#pragma once

#include <cstdint>

#include "math/gemm_epilogue.h"
#include "math/lanes.h"

namespace buropt::detail {

/// Most rows of a register block, and most vectors in a row of a block of `rows` rows: enough
/// accumulators to hide the latency of fma, few enough to stay in registers with B and A.
inline constexpr int kGemmRows = kRegisters == 32 ? 8 : 4;

constexpr int gemm_packs(std::int64_t rows) {
  if (kRegisters == 32) return rows == 1 ? 8 : rows == 2 ? 6 : rows <= 6 ? 4 : 3;
  return rows == 1 ? 8 : rows == 2 ? 5 : 3;
}
inline constexpr int kGemmPacks = gemm_packs(1);

/// C (rows, strip) = epilogue of init + A (rows, k) B (k, strip); pointers at the block's first
/// element.
template <class T>
struct GemmBlock {
  std::int64_t k;
  const T* a;
  std::int64_t a_row;
  std::int64_t a_col;
  const T* b;
  std::int64_t ldb;
  GemmTarget<T> to;
};

template <class T, int kRows, class Strip>
[[gnu::noinline]] void gemm_block(const GemmBlock<T>& block, Strip strip) noexcept {
  constexpr int kLanes = Strip::kLanes;
  constexpr int kPacks = Strip::kPacks;
  using V = Lanes<T, kLanes>;
  V sum[kRows][kPacks] = {};
  const T* a = block.a;
  const T* b = block.b;
  const std::int64_t a_row = block.a_row;
  const std::int64_t a_col = block.a_col;
  const std::int64_t ldb = block.ldb;
  for (std::int64_t p = block.k; p > 0; --p, a += a_col, b += ldb) {
    V row[kPacks];
#pragma GCC unroll 8
    for (int q = 0; q < kPacks; ++q) row[q] = load_lanes<T, kLanes>(b + strip.offset(q));
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      const T factor = a[i * a_row];
#pragma GCC unroll 8
      for (int q = 0; q < kPacks; ++q) sum[i][q] = multiply_add(row[q], factor, sum[i][q]);
    }
  }
  store_block<T, kRows>(sum, block.to, strip);
}

}  // namespace buropt::detail
