// Sums over one axis of an array: reductions in a graph, and over the batch.
//
// Order of summation, a function of the shape alone. Contiguous numbers (inner = 1) are summed as
// in dot.h. Otherwise the axis is cut into blocks of kReduceBlock; a block is summed in
// kReduceChains chains (index r goes to chain r mod kReduceChains), which are added in pairs; the
// blocks are added to the output in order.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>

#include "math/dot.h"
#include "math/lanes.h"

namespace buropt {

namespace detail {

inline constexpr std::int64_t kReduceBlock = 256;
inline constexpr int kReduceChains = 4;
inline constexpr int kReducePacks = kRegisters == 32 ? 6 : 3;

// A strip of sum_columns, for n <= kReduceBlock.
template <class T, class Strip, class Add>
BUROPT_INLINE void sum_strip(std::int64_t n, T* out, bool accumulate, Strip strip,
                             Add add) noexcept {
  constexpr int kPacks = Strip::kPacks;
  constexpr std::integral_constant<int, Strip::kLanes> kLanes;
  Lanes<T, kLanes> sum[kReduceChains][kPacks] = {};
  const auto add_row = [&](int chain, std::int64_t r) {
#pragma GCC unroll 8
    for (int q = 0; q < kPacks; ++q) {
      sum[chain][q] = add(kLanes, r, strip.begin + strip.offset(q), sum[chain][q]);
    }
  };
  std::int64_t r = 0;
  for (; r + kReduceChains <= n; r += kReduceChains) {
#pragma GCC unroll 4
    for (int chain = 0; chain < kReduceChains; ++chain) add_row(chain, r + chain);
  }
#pragma GCC unroll 3
  for (int chain = 0; chain < kReduceChains - 1; ++chain) {
    if (r + chain < n) add_row(chain, r + chain);
  }
  out += strip.begin;
  Lanes<T, kLanes> total[kPacks];
#pragma GCC unroll 8
  for (int q = 0; q < kPacks; ++q) {
    total[q] = (sum[0][q] + sum[1][q]) + (sum[2][q] + sum[3][q]);
    if (accumulate) total[q] += load_lanes<T, kLanes>(out + strip.offset(q));
  }
#pragma GCC unroll 8
  for (int q = 0; q < kPacks; ++q) store_lanes<T, kLanes>(out + strip.offset(q), total[q]);
}

template <class T, int kRows>
BUROPT_INLINE void sum_contiguous(const T* in, std::int64_t n, T* out, bool accumulate) noexcept {
  std::array<const T*, kRows> rows;
  for (std::size_t i = 0; i < kRows; ++i) rows[i] = in + static_cast<std::int64_t>(i) * n;
  const std::array<T, kRows> sums = sum_rows<false, T, kRows>(rows, nullptr, n);
  for (std::size_t i = 0; i < kRows; ++i) out[i] = accumulate ? out[i] + sums[i] : sums[i];
}

}  // namespace detail

/// out (columns) = or += sum over n rows. add(kLanes, r, j, sum) gives `sum` plus columns j, j + 1,
/// ... of row r, kLanes (a constant) of them.
template <class T, class Add>
BUROPT_INLINE void sum_columns(std::int64_t n, std::int64_t columns, T* out, bool accumulate,
                               Add add) noexcept {
  std::int64_t begin = 0;
  do {
    const std::int64_t rows = std::min(n - begin, detail::kReduceBlock);
    for_each_strip<T, detail::kReducePacks>(
        columns, detail::kReducePacks, [&](auto strip) noexcept {
          detail::sum_strip(rows, out, accumulate || begin > 0, strip,
                            [&](auto lanes, std::int64_t r, std::int64_t j, auto sum) {
                              return add(lanes, begin + r, j, sum);
                            });
        });
    begin += rows;
  } while (begin < n);
}

/// out (outer, inner) = or += sum over r of in (outer, n, inner), both contiguous. The sums of the
/// columns of an (m, n) matrix are sum_axis(in, 1, m, n, out, ...).
template <class T>
void sum_axis(const T* in, std::int64_t outer, std::int64_t n, std::int64_t inner, T* out,
              bool accumulate) noexcept {
  if (inner == 1) {
    constexpr int kRows = 4;
    std::int64_t o = 0;
    for (; o + kRows <= outer; o += kRows) {
      detail::sum_contiguous<T, kRows>(in + o * n, n, out + o, accumulate);
    }
    for (; o < outer; ++o) detail::sum_contiguous<T, 1>(in + o * n, n, out + o, accumulate);
    return;
  }
  for (std::int64_t o = 0; o < outer; ++o, in += n * inner, out += inner) {
    sum_columns(n, inner, out, accumulate,
                [&](auto lanes, std::int64_t r, std::int64_t j, auto sum) {
                  return sum + load_lanes<T, lanes>(in + r * inner + j);
                });
  }
}

}  // namespace buropt
