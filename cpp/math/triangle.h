// Symmetric matrices as packed upper triangles, and sums of the outer products of weighted rows.
//
// A symmetric (d, d) matrix is the vector of its d (d + 1) / 2 entries (r, c), r <= c, row after
// row, those off the diagonal times sqrt(2): its Euclidean norm is the matrix's Frobenius norm.
//
// Order of summation: one chain over the rows of data, in the order that is given. The dense form
// sums blocks of kGramRows rows by themselves (see gemm.h) and adds them in order.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "math/csr.h"
#include "math/dot.h"
#include "math/gemm.h"

namespace buropt {

constexpr std::int64_t triangle_size(std::int64_t d) noexcept { return d * (d + 1) / 2; }

/// Entry (r, c) lies at triangle_row(d, r) + c.
constexpr std::int64_t triangle_row(std::int64_t d, std::int64_t r) noexcept {
  return r * d - r * (r + 1) / 2;
}

namespace detail {

inline constexpr std::int64_t kGramRows = 64;     // of the data, in one product
inline constexpr std::int64_t kGramColumns = 32;  // of the result, in one product

template <bool has_values, class T>
void add_csr_gram(const CsrRows<T>& a, const T* weights, std::int64_t d, T* g) noexcept {
  for (std::int64_t i = 0; i < a.n; ++i) {
    const std::int64_t row = a.row(i);
    const std::int64_t end = a.row_starts[row + 1];
    const T weight = weights[row];
    for (std::int64_t e = a.row_starts[row]; e < end; ++e) {
      const T factor = has_values ? weight * a.values[e] : weight;
      T* line = g + triangle_row(d, a.columns[e]);
      line[a.columns[e]] += has_values ? factor * a.values[e] : factor;
      const T twice = factor * std::numbers::sqrt2_v<T>;
#pragma GCC unroll 4
      for (std::int64_t q = e + 1; q < end; ++q) {
        T& target = line[a.columns[q]];
        target = multiply_add(twice, has_values ? a.values[q] : T(1), target);
      }
    }
  }
}

}  // namespace detail

/// g, the triangle of (d, d), += sum_i w_i a_i a_i^T over sparse rows whose columns ascend. weights
/// (n_samples,) are by number of the row in the data.
template <class T>
void add_gram(const CsrRows<T>& a, const T* weights, std::int64_t d, T* g) noexcept {
  return a.values != nullptr ? detail::add_csr_gram<true>(a, weights, d, g)
                             : detail::add_csr_gram<false>(a, weights, d, g);
}

/// Rows of a dense (n_samples, d) matrix: first..first+n-1, or those that `rows` lists.
template <class T>
struct DenseRows {
  const T* values;
  const std::int64_t* rows;  ///< nullptr: all in order
  std::int64_t first;
  std::int64_t n;

  std::int64_t row(std::int64_t i) const noexcept {
    return rows == nullptr ? first + i : rows[first + i];
  }
};

/// Elements of scratch that add_gram needs for dense rows.
template <class T>
std::int64_t gram_scratch(std::int64_t d) noexcept {
  return d * d + 2 * detail::kGramRows * d +
         gemm_scratch<T>(detail::kGramColumns, d, detail::kGramRows, false);
}

/// The same over dense rows.
template <class T>
void add_gram(const DenseRows<T>& a, const T* weights, std::int64_t d, T* g, T* scratch) noexcept {
  T* sum = scratch;
  T* plain = sum + d * d;
  T* weighted = plain + detail::kGramRows * d;
  std::fill_n(sum, d * d, T(0));
  for (std::int64_t begin = 0; begin < a.n; begin += detail::kGramRows) {
    const std::int64_t count = std::min(detail::kGramRows, a.n - begin);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = a.row(begin + i);
      for (std::int64_t c = 0; c < d; ++c) {
        plain[i * d + c] = a.values[row * d + c];
        weighted[i * d + c] = weights[row] * plain[i * d + c];
      }
    }
    for (std::int64_t r = 0; r < d; r += detail::kGramColumns) {
      Gemm<T> product;
      product.m = std::min(detail::kGramColumns, d - r);
      product.n = d - r;
      product.k = count;
      product.a = weighted + r;
      product.a_row = 1;
      product.a_col = d;
      product.b = plain + r;
      product.ldb = d;
      product.c = sum + r * d + r;
      product.ldc = d;
      product.init = product.c;
      product.init_row = d;
      gemm(product, weighted + detail::kGramRows * d);
    }
  }
  for (std::int64_t r = 0; r < d; ++r) {
    T* line = g + triangle_row(d, r);
    line[r] += sum[r * d + r];
    for (std::int64_t c = r + 1; c < d; ++c) {
      line[c] = multiply_add(sum[r * d + c], std::numbers::sqrt2_v<T>, line[c]);
    }
  }
}

/// The lower triangle of A + shift I in a row-major (d, d) array; what lies above is not written.
template <class T>
void unpack_lower(const T* triangle, std::int64_t d, T shift, T* a) noexcept {
  for (std::int64_t r = 0; r < d; ++r) {
    const T* line = triangle + triangle_row(d, r);
    a[r * d + r] = line[r] + shift;
    for (std::int64_t c = r + 1; c < d; ++c) a[c * d + r] = line[c] * std::numbers::sqrt2_v<T> / 2;
  }
}

/// y (d,) = A x.
template <class T>
void triangle_times(const T* triangle, std::int64_t d, const T* x, T* y) noexcept {
  std::fill_n(y, d, T(0));
  for (std::int64_t r = 0; r < d; ++r) {
    const T* line = triangle + triangle_row(d, r);
    const T half = x[r] * (std::numbers::sqrt2_v<T> / 2);
    T sum = dot(line + r + 1, x + r + 1, d - r - 1) * (std::numbers::sqrt2_v<T> / 2);
    for (std::int64_t c = r + 1; c < d; ++c) y[c] = multiply_add(half, line[c], y[c]);
    y[r] += line[r] * x[r] + sum;
  }
}

}  // namespace buropt
