// Rows of a dense matrix times a vector, and the transposed product that its gradient needs.
//
// Order of summation: gemv gives every row the bits of dot(row, x, width). gemv_t cuts the rows
// into blocks of kGemvBlock; an element of g gets the blocks' sums in order, and a block's sum is
// one chain of multiply-adds in row order that starts at zero. It equals gemm with m = 1.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "math/dot.h"
#include "math/gemm.h"
#include "math/lanes.h"

namespace buropt {

inline constexpr std::int64_t kGemvBlock = kGemmBlock;

/// n rows of a row-major matrix, in place: rows first..first+n-1, or those that `rows` names at
/// positions first..first+n-1.
template <class T>
struct DenseRows {
  const T* values;      // (all rows, width)
  std::int64_t stride;  // elements from row to row
  std::int64_t width;
  const std::int64_t* rows;  // nullptr: all rows in order
  std::int64_t first;
  std::int64_t n;

  BUROPT_INLINE const T* operator[](std::int64_t i) const noexcept {
    return values + (rows == nullptr ? first + i : rows[first + i]) * stride;
  }
};

namespace detail {

inline constexpr int kGemvRows = kRegisters / 8;

template <class T, int kRows>
BUROPT_INLINE void gemv_rows(const DenseRows<T>& a, std::int64_t i, const T* x, T* z) noexcept {
  std::array<const T*, kRows> rows;
  for (std::size_t r = 0; r < kRows; ++r) rows[r] = a[i + static_cast<std::int64_t>(r)];
  const std::array<T, kRows> sums = sum_rows<true, T, kRows>(rows, x, a.width);
  for (std::size_t r = 0; r < kRows; ++r) z[r] = sums[r];
}

// g (strip) = or += sum over rows [begin, end) of r[i] * a[i].
template <class T, class Strip>
void gemv_t_strip(const DenseRows<T>& a, std::int64_t begin, std::int64_t end, const T* r, T* g,
                  bool adds, Strip strip) noexcept {
  constexpr int kLanes = Strip::kLanes;
  constexpr int kPacks = Strip::kPacks;
  using V = Lanes<T, kLanes>;
  V sum[kPacks] = {};
  for (std::int64_t i = begin; i < end; ++i) {
    const T* row = a[i] + strip.begin;
    const T factor = r[i];
#pragma GCC unroll 8
    for (int q = 0; q < kPacks; ++q) {
      sum[q] = multiply_add(load_lanes<T, kLanes>(row + strip.offset(q)), factor, sum[q]);
    }
  }
  g += strip.begin;
  if (adds) {
#pragma GCC unroll 8
    for (int q = 0; q < kPacks; ++q) sum[q] += load_lanes<T, kLanes>(g + strip.offset(q));
  }
#pragma GCC unroll 8
  for (int q = 0; q < kPacks; ++q) store_lanes<T, kLanes>(g + strip.offset(q), sum[q]);
}

}  // namespace detail

/// z (n,) = or += A x: z[i] = dot(a[i], x).
template <class T>
void gemv(const DenseRows<T>& a, const T* x, T* z) noexcept {
  std::int64_t i = 0;
  for (; i + detail::kGemvRows <= a.n; i += detail::kGemvRows) {
    detail::gemv_rows<T, detail::kGemvRows>(a, i, x, z + i);
  }
  for (; i < a.n; ++i) detail::gemv_rows<T, 1>(a, i, x, z + i);
}

/// g (width,) += A^T r: g[j] += sum_i a[i][j] * r[i]; g = A^T r unless `adds`.
template <class T>
void gemv_t(const DenseRows<T>& a, const T* r, T* g, bool adds) noexcept {
  for (std::int64_t begin = 0; begin < a.n; begin += kGemvBlock) {
    const std::int64_t end = std::min(a.n, begin + kGemvBlock);
    for_each_strip<T, 8>(a.width, 8, [&](auto strip) noexcept {
      detail::gemv_t_strip<T>(a, begin, end, r, g, adds || begin > 0, strip);
    });
  }
}

}  // namespace buropt
