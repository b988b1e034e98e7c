// Rows of a sparse matrix (CSR) times a vector or a matrix, and the scatter of its gradient.
//
// Order of summation: csr_dot sums entry e of a row in lane e mod 4 and adds the lanes in pairs;
// with a matrix x it is one chain over the entries. csr_scatter adds row after row in the order
// that is given, entry after entry, straight to g. So all results are the same whether ones are
// stored or left out, and without an order also however rows are cut into tiles. Rows that a list
// picks have kernels of their own with the same sums (csr_picked.h).
//
// Of short rows, what costs time is a branch that mispredicts where a row ends. So csr_dot handles
// the last entries of a row under a mask instead of a loop, and where lengths vary from row to row
// the caller gives an order by length (w8a, 12 entries a row: 0.5x the time). Of long rows it is
// the entries, which an order would not read as one stream (news20, 80: 1.4x).
#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "math/csr_picked.h"
#include "math/csr_rows.h"
#include "math/lanes.h"

namespace buropt {

namespace detail {

// Entries of a row that are summed side by side, and how many entries ahead to prefetch: the
// hardware does not run far enough ahead of a stream that is read a row at a time.
inline constexpr std::int64_t kCsrGroup = 4;
inline constexpr std::int64_t kCsrAhead = 256;

// The lanes of one row's sum, in one register or more.
template <class T>
struct CsrSum {
  static constexpr int kLanes = std::min(static_cast<int>(kCsrGroup), Pack<T>::size);
  static constexpr int kParts = static_cast<int>(kCsrGroup) / kLanes;
  using Index = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

  Lanes<T, kLanes> parts[kParts] = {};

  // Adds a group's entries: all, or the first `count`; the others are read and may hold anything.
  template <bool has_values, bool all>
  BUROPT_INLINE void add(const T* values, const std::int32_t* columns, const T* x,
                         std::int64_t count) noexcept {
#pragma GCC unroll 2
    for (int part = 0; part < kParts; ++part) {
      const int begin = part * kLanes;
      Lanes<T, kLanes> gathered;
      Lanes<Index, kLanes> lane;
#pragma GCC unroll 4
      for (int i = 0; i < kLanes; ++i) {
        gathered[i] = x[columns[begin + i]];
        lane[i] = static_cast<Index>(begin + i);
      }
      Lanes<T, kLanes> sum = parts[part] + gathered;
      if constexpr (has_values) {
        sum = multiply_add(gathered, load_lanes<T, kLanes>(values + begin), parts[part]);
      }
      if constexpr (all) {
        parts[part] = sum;
      } else {
        parts[part] = lane < static_cast<Index>(count) ? sum : parts[part];
      }
    }
  }

  BUROPT_INLINE T total() const noexcept { return (lane(0) + lane(2)) + (lane(1) + lane(3)); }

 private:
  BUROPT_INLINE T lane(int i) const noexcept { return parts[i / kLanes][i % kLanes]; }
};

// A row at the end of the matrix, where a whole last group cannot be read.
template <bool has_values, class T>
[[gnu::noinline]] T csr_dot_last(const T* values, const std::int32_t* columns, std::int64_t count,
                                 const T* x) noexcept {
  CsrSum<T> sum;
  std::int64_t e = 0;
  for (; e + kCsrGroup <= count; e += kCsrGroup) {
    sum.template add<has_values, true>(values + e, columns + e, x, kCsrGroup);
  }
  T last_values[kCsrGroup] = {};
  std::int32_t last_columns[kCsrGroup] = {};
  for (std::int64_t i = 0; e + i < count; ++i) {
    last_columns[i] = columns[e + i];
    if constexpr (has_values) last_values[i] = values[e + i];
  }
  // An empty matrix may have no column to read.
  if (e < count) sum.template add<has_values, false>(last_values, last_columns, x, count - e);
  return sum.total();
}

template <bool has_values, class T>
BUROPT_INLINE T csr_dot_row(const T* values, const std::int32_t* columns, std::int64_t count,
                            const T* x) noexcept {
  CsrSum<T> sum;
  if (count <= 2 * kCsrGroup) {
    sum.template add<has_values, false>(values, columns, x, count);
    sum.template add<has_values, false>(values + kCsrGroup, columns + kCsrGroup, x,
                                        count - kCsrGroup);
    return sum.total();
  }
  for (; count >= kCsrGroup; count -= kCsrGroup) {
    sum.template add<has_values, true>(values, columns, x, kCsrGroup);
    values += kCsrGroup;
    columns += kCsrGroup;
  }
  sum.template add<has_values, false>(values, columns, x, count);
  return sum.total();
}

template <bool has_values, class T>
void csr_dot(const CsrRows<T>& a, const T* x, T* z) noexcept {
  const std::int64_t last_begin = a.n_entries - 2 * kCsrGroup;
  for (std::int64_t t = 0; t < a.n; ++t) {
    const std::int64_t i = a.turn(t);
    const std::int64_t* starts = a.row_starts + a.row(i);
    const T* values = has_values ? a.values + starts[0] : nullptr;
    const std::int32_t* columns = a.columns + starts[0];
    const std::int64_t count = starts[1] - starts[0];
    if (starts[1] > last_begin) {
      z[i] = csr_dot_last<has_values>(values, columns, count, x);
      continue;
    }
    __builtin_prefetch(columns + kCsrAhead);
    if constexpr (has_values) {
      __builtin_prefetch(values + kCsrAhead);
      __builtin_prefetch(values + kCsrAhead + 8);
    }
    z[i] = csr_dot_row<has_values>(values, columns, count, x);
  }
}

template <bool has_values, class T>
void csr_scatter(const CsrRows<T>& a, const T* r, T* g) noexcept {
  const std::int32_t* columns = a.columns;
  const T* values = a.values;
  for (std::int64_t t = 0; t < a.n; ++t) {
    const std::int64_t i = a.turn(t);
    const std::int64_t row = a.row(i);
    const std::int64_t end = a.row_starts[row + 1];
    const T factor = r[i];
#pragma GCC unroll 2
    for (std::int64_t e = a.row_starts[row]; e < end; ++e) {
      T& target = g[columns[e]];
      target = multiply_add(factor, has_values ? values[e] : T(1), target);
    }
  }
}

// z (n, strip) = A x (d, strip); all rows of x and z are k long.
template <bool has_values, class T, class Strip>
void csr_dot_strip(const CsrRows<T>& a, const T* x, std::int64_t k, T* z, Strip strip) noexcept {
  constexpr int kLanes = Strip::kLanes;
  constexpr int kPacks = Strip::kPacks;
  for (std::int64_t i = 0; i < a.n; ++i, z += k) {
    const std::int64_t end = a.row_starts[a.row(i) + 1];
    Lanes<T, kLanes> sum[kPacks] = {};
    for (std::int64_t e = a.row_starts[a.row(i)]; e < end; ++e) {
      const T* row = x + a.columns[e] * k;
      const T value = has_values ? a.values[e] : T(1);
#pragma GCC unroll 8
      for (int q = 0; q < kPacks; ++q) {
        sum[q] = multiply_add(load_lanes<T, kLanes>(row + strip.offset(q)), value, sum[q]);
      }
    }
#pragma GCC unroll 8
    for (int q = 0; q < kPacks; ++q) store_lanes<T, kLanes>(z + strip.offset(q), sum[q]);
  }
}

// g (d, strip) += A^T r (n, strip); all rows of r and g are k long.
template <bool has_values, class T, class Strip>
void csr_scatter_strip(const CsrRows<T>& a, const T* r, std::int64_t k, T* g,
                       Strip strip) noexcept {
  constexpr int kLanes = Strip::kLanes;
  constexpr int kPacks = Strip::kPacks;
  using V = Lanes<T, kLanes>;
  for (std::int64_t i = 0; i < a.n; ++i, r += k) {
    const std::int64_t end = a.row_starts[a.row(i) + 1];
    V factor[kPacks];
#pragma GCC unroll 8
    for (int q = 0; q < kPacks; ++q) factor[q] = load_lanes<T, kLanes>(r + strip.offset(q));
    for (std::int64_t e = a.row_starts[a.row(i)]; e < end; ++e) {
      T* row = g + a.columns[e] * k;
      const T value = has_values ? a.values[e] : T(1);
      V sum[kPacks];
#pragma GCC unroll 8
      for (int q = 0; q < kPacks; ++q) {
        sum[q] = multiply_add(factor[q], value, load_lanes<T, kLanes>(row + strip.offset(q)));
      }
#pragma GCC unroll 8
      for (int q = 0; q < kPacks; ++q) store_lanes<T, kLanes>(row + strip.offset(q), sum[q]);
    }
  }
}

}  // namespace detail

/// z (n,) = A x (d,).
template <class T>
void csr_dot(const CsrRows<T>& a, const T* x, T* z) noexcept {
  if (a.are_picked()) return csr_dot_picked(a, x, z);
  return a.values != nullptr ? detail::csr_dot<true>(a, x, z) : detail::csr_dot<false>(a, x, z);
}

/// g (d,) += A^T r (n,).
template <class T>
void csr_scatter(const CsrRows<T>& a, const T* r, T* g) noexcept {
  if (a.are_picked()) return csr_scatter_picked(a, r, g);
  return a.values != nullptr ? detail::csr_scatter<true>(a, r, g)
                             : detail::csr_scatter<false>(a, r, g);
}

/// z (n, k) = A x (d, k).
template <class T>
void csr_dot(const CsrRows<T>& a, const T* x, std::int64_t k, T* z) noexcept {
  for_each_strip<T, 8>(k, 8, [&](auto strip) noexcept {
    const T* x_strip = x + strip.begin;
    T* z_strip = z + strip.begin;
    return a.values != nullptr ? detail::csr_dot_strip<true>(a, x_strip, k, z_strip, strip)
                               : detail::csr_dot_strip<false>(a, x_strip, k, z_strip, strip);
  });
}

/// g (d, k) += A^T r (n, k).
template <class T>
void csr_scatter(const CsrRows<T>& a, const T* r, std::int64_t k, T* g) noexcept {
  constexpr int kMaxPacks = kRegisters / 4;  // sums and factors
  for_each_strip<T, kMaxPacks>(k, kMaxPacks, [&](auto strip) noexcept {
    const T* r_strip = r + strip.begin;
    T* g_strip = g + strip.begin;
    return a.values != nullptr ? detail::csr_scatter_strip<true>(a, r_strip, k, g_strip, strip)
                               : detail::csr_scatter_strip<false>(a, r_strip, k, g_strip, strip);
  });
}

}  // namespace buropt
