// Vectors run along the rows of both matrices; their lanes are summed at the end of a block.
#include "math/gemm_dots.h"

#include <algorithm>
#include <utility>

#include "math/dot.h"
#include "math/lanes.h"
#include "math/transpose.h"

namespace buropt {

namespace {

using detail::GemmTarget;

/// A register block has up to kDotRows rows and dot_columns(rows) columns; sums of kDotGroup
/// columns are reduced together.
inline constexpr int kDotRows = kRegisters == 32 ? 6 : 3;
constexpr int dot_columns(int rows) { return rows <= kDotRows / 2 ? 8 : 4; }
template <class T>
inline constexpr int kDotGroup = std::min(4, Pack<T>::size);

/// Columns [0, columns) of C (kRows, dot_columns) = epilogue of init + A (kRows, k) B (columns,
/// k)^T.
template <class T>
struct DotBlock {
  std::int64_t k;
  const T* a;
  std::int64_t a_row;
  const T* b;
  std::int64_t ldb;
  std::int64_t columns;
  const T* ahead;  // k numbers that a later block reads: they are asked for here
  GemmTarget<T> to;
};

// Lanes a b a b ...: sums of half as many terms.
template <class V, std::size_t... i>
BUROPT_INLINE V add_halves(V a, V b, std::index_sequence<i...> all) noexcept {
  constexpr std::size_t kGroup = std::min<std::size_t>(4, sizeof...(i));
  return detail::interleave<kGroup, 0>(a, b, all) + detail::interleave<kGroup, 1>(a, b, all);
}

template <class T, int kLanes>
BUROPT_INLINE auto fold_to_group(Lanes<T, kLanes> v) noexcept {
  if constexpr (kLanes == kDotGroup<T>) {
    return v;
  } else {
    constexpr int kHalf = kLanes / 2;
    constexpr auto kIndices = std::make_index_sequence<kHalf>();
    return fold_to_group<T, kHalf>(detail::part_of<0>(v, kIndices) +
                                   detail::part_of<kHalf>(v, kIndices));
  }
}

/// The sums of the lanes of kDotGroup vectors.
template <class T>
BUROPT_INLINE Lanes<T, kDotGroup<T>> sum_lanes(const Lanes<T, Pack<T>::size>* v) noexcept {
  constexpr int kLanes = Pack<T>::size;
  constexpr auto kAll = std::make_index_sequence<kLanes>();
  if constexpr (kDotGroup<T> == 2) {
    return fold_to_group<T, kLanes>(add_halves(v[0], v[1], kAll));
  } else {
    const auto even = add_halves(v[0], v[2], kAll);
    const auto odd = add_halves(v[1], v[3], kAll);
    return fold_to_group<T, kLanes>(add_halves(even, odd, kAll));
  }
}

template <class T, int kRows>
[[gnu::noinline]] void dot_block(const DotBlock<T>& block) noexcept {
  constexpr int kLanes = Pack<T>::size;
  constexpr int kColumns = dot_columns(kRows);
  constexpr int kGroup = kDotGroup<T>;
  constexpr int kGroups = kColumns / kGroup;
  using V = Lanes<T, kLanes>;
  const T* a[kRows];
  const T* b[kColumns];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) a[i] = block.a + i * block.a_row;
  // Columns that are not there repeat the last one.
#pragma GCC unroll 8
  for (int j = 0; j < kColumns; ++j) {
    b[j] = block.b + std::min<std::int64_t>(j, block.columns - 1) * block.ldb;
  }
  V sum[kRows][kColumns] = {};
  const auto add = [&](auto&& load) __attribute__((always_inline)) {
    V row[kRows];
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) row[i] = load(a[i]);
#pragma GCC unroll 8
    for (int j = 0; j < kColumns; ++j) {
      const V column = load(b[j]);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) sum[i][j] = multiply_add(row[i], column, sum[i][j]);
    }
  };
  std::int64_t p = 0;
  for (; p + kLanes <= block.k; p += kLanes) {
    __builtin_prefetch(block.ahead + p, 0, 2);
    add([&](const T* x) __attribute__((always_inline)) { return load_lanes<T, kLanes>(x + p); });
  }
  if (p < block.k) {
    const auto rest = static_cast<int>(block.k - p);
    add([&](const T* x) __attribute__((always_inline)) { return Pack<T>::load_n(x + p, rest).v; });
  }
  Lanes<T, kGroup> total[kRows][kGroups];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) total[i][g] = sum_lanes<T>(sum[i] + g * kGroup);
  }
  if (block.columns >= kColumns) {
    detail::store_block<T, kRows>(total, block.to, Strip<kGroup, kGroups>{0, kColumns});
    return;
  }
  for (std::int64_t j = 0; j < block.columns; ++j) {
    T one[kRows][1];
    for (int i = 0; i < kRows; ++i) one[i][0] = total[i][j / kGroup][j % kGroup];
    detail::store_block<T, kRows>(one, block.to.from_column(j), Strip<1, 1>{0, 1});
  }
}

// One register block; `rows` becomes a constant.
template <class T, int kRows>
void call_block(std::int64_t rows, const DotBlock<T>& block) noexcept {
  if constexpr (kRows > 1) {
    if (rows < kRows) return call_block<T, kRows - 1>(rows, block);
  }
  dot_block<T, kRows>(block);
}

// A block of k. Some columns stay in the second level of cache while rows of A, which stay in the
// first one, pass. Meanwhile the next columns come into that cache, one for each register block.
template <class T>
void multiply_block(const Gemm<T>& g, const GemmEpilogue<T>* rest) noexcept {
  constexpr std::int64_t kPanelBytes = 1 << 18;
  const std::int64_t blocks = ceil_div(g.m, kDotRows);
  const std::int64_t row_bytes = g.k * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t panel = std::max<std::int64_t>(1, kPanelBytes / row_bytes / 8) * 8;
  for (std::int64_t first = 0; first < g.n; first += panel) {
    const std::int64_t last = std::min(g.n, first + panel);
    for (std::int64_t s = 0; s < blocks; ++s) {
      const std::int64_t i = part_begin(g.m, blocks, s);
      const std::int64_t rows = part_begin(g.m, blocks, s + 1) - i;
      const T* init = g.init == nullptr ? nullptr : g.init + i * g.init_row;
      const GemmTarget<T> row{g.c + i * g.ldc, g.ldc, init, g.init_row, rest, i, 0};
      const std::int64_t step = dot_columns(static_cast<int>(rows));
      for (std::int64_t j = first; j < last; j += step) {
        const std::int64_t next = last + (j - first) + s;
        const T* b = g.b + j * g.ldb;
        const T* ahead = s < step && next < g.n ? g.b + next * g.ldb : b;
        call_block<T, kDotRows>(
            rows, {g.k, g.a + i * g.a_row, g.a_row, b, g.ldb, last - j, ahead, row.from_column(j)});
      }
    }
  }
}

}  // namespace

template <class T>
void gemm_by_dots(const Gemm<T>& g) noexcept {
  Gemm<T> part = g;
  for (std::int64_t p = 0; p < g.k; p += part.k) {
    part.k = std::min(kGemmDotBlock, g.k - p);
    part.a = g.a + p;
    part.b = g.b + p;
    multiply_block(part, p + part.k == g.k && !g.empty() ? &g : nullptr);
    // Later blocks of k add to what the first one left.
    part.init = g.c;
    part.init_row = g.ldc;
  }
}

template void gemm_by_dots<float>(const Gemm<float>&) noexcept;
template void gemm_by_dots<double>(const Gemm<double>&) noexcept;

}  // namespace buropt
