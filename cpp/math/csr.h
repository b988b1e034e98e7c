// Rows of a sparse matrix (CSR) times a vector or a matrix, and the scatter of its gradient.
//
// Order of summation: csr_dot sums a row's entries in four lanes (entry e of a row in lane e mod 4),
// the last one to three entries in a chain of their own; with a matrix x it is one chain over the
// entries. csr_scatter adds row after row, entry after entry, straight to g. So all results are the
// same however rows are cut into tiles, and the same whether ones are stored or left out.
#pragma once

#include <algorithm>
#include <cstdint>

#include "math/lanes.h"

namespace buropt {

/// n rows of a CSR matrix, in place: rows first..first+n-1, or those that `rows` names at positions
/// first..first+n-1. Row i has entries row_starts[i]..row_starts[i + 1].
template <class T>
struct CsrRows {
  const T* values;  // nullptr: every entry is 1
  const std::int32_t* columns;
  const std::int64_t* row_starts;
  const std::int64_t* rows;  // nullptr: all rows in order
  std::int64_t first;
  std::int64_t n;

  BUROPT_INLINE std::int64_t row(std::int64_t i) const noexcept {
    return rows == nullptr ? first + i : rows[first + i];
  }
};

namespace detail {

// Entries handled together; also the lanes of a row's sum.
inline constexpr int kCsrGroup = 4;

template <bool has_values, class T>
void csr_dot(const CsrRows<T>& a, const T* x, T* z) noexcept {
  // A group fills one or more registers.
  constexpr int kLanes = std::min(kCsrGroup, Pack<T>::size);
  constexpr int kParts = kCsrGroup / kLanes;
  using V = Lanes<T, kLanes>;
  const std::int32_t* columns = a.columns;
  for (std::int64_t i = 0; i < a.n; ++i) {
    std::int64_t e = a.row_starts[a.row(i)];
    const std::int64_t end = a.row_starts[a.row(i) + 1];
    V sums[kParts] = {};
    for (; e + kCsrGroup <= end; e += kCsrGroup) {
#pragma GCC unroll 2
      for (int part = 0; part < kParts; ++part) {
        const std::int64_t begin = e + part * kLanes;
        V gathered;
#pragma GCC unroll 4
        for (int lane = 0; lane < kLanes; ++lane) gathered[lane] = x[columns[begin + lane]];
        if constexpr (has_values) {
          sums[part] = multiply_add(gathered, load_lanes<T, kLanes>(a.values + begin), sums[part]);
        } else {
          sums[part] += gathered;
        }
      }
    }
    T rest = T(0);
    for (; e < end; ++e) {
      const T value = has_values ? a.values[e] : T(1);
      rest = multiply_add(x[columns[e]], value, rest);
    }
    const auto lane = [&sums](int index) { return sums[index / kLanes][index % kLanes]; };
    z[i] = ((lane(0) + lane(2)) + (lane(1) + lane(3))) + rest;
  }
}

template <bool has_values, class T>
void csr_scatter(const CsrRows<T>& a, const T* r, T* g) noexcept {
  const std::int32_t* columns = a.columns;
  for (std::int64_t i = 0; i < a.n; ++i) {
    std::int64_t e = a.row_starts[a.row(i)];
    const std::int64_t end = a.row_starts[a.row(i) + 1];
    const T factor = r[i];
    const auto add = [&](std::int64_t entry) {
      T& target = g[columns[entry]];
      target = multiply_add(factor, has_values ? a.values[entry] : T(1), target);
    };
    for (; e + kCsrGroup <= end; e += kCsrGroup) {
#pragma GCC unroll 4
      for (int lane = 0; lane < kCsrGroup; ++lane) add(e + lane);
    }
    for (; e < end; ++e) add(e);
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
  return a.values != nullptr ? detail::csr_dot<true>(a, x, z) : detail::csr_dot<false>(a, x, z);
}

/// g (d,) += A^T r (n,).
template <class T>
void csr_scatter(const CsrRows<T>& a, const T* r, T* g) noexcept {
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
