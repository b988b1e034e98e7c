// Softmax attention of many heads: out = softmax(scale Q K' + mask) V for each head of each sample.
//
// A sample is a matrix of T rows; row t holds q, k and v of position t, each of them all heads one
// after another. A problem is one head of one sample. Short heads are done a register's worth of
// problems at a time: their numbers are transposed into lanes, and no sum runs across lanes. Long
// heads are matrix products over blocks of queries, so memory grows with T and not with T^2. Which
// way is taken depends on the shape alone, and so does every order of summation.
#pragma once

#include <algorithm>
#include <cstdint>

#include "math/attention_lanes.h"
#include "math/dot.h"
#include "math/exp.h"
#include "math/gemm.h"
#include "math/rows.h"

namespace buropt {

namespace detail {

inline constexpr std::int64_t kQueryBlock = 64;

/// p[0..keys) = softmax(scale p[0..keys)), p[keys..n) = 0.
template <class T>
void softmax_row(T* p, std::int64_t keys, std::int64_t n, T scale) noexcept {
  Pack<T> max(-kInfinity<T>);
  for_each_columns<T>(keys, [&](auto at) {
    const Pack<T> x = at.load(p) * scale;
    max = maximum(max, at.within(x, -kInfinity<T>));
  });
  const T m = fold_lanes(max, Larger());
  Pack<T> sum(T(0));
  for_each_columns<T>(keys, [&](auto at) {
    const Pack<T> e = exp_of_nonpositive(at.load(p) * scale - m);
    sum += at.within(e);
    at.store(p, e);
  });
  const T factor = T(1) / fold_lanes(sum, Plus());
  for_each_columns<T>(keys, [&](auto at) { at.store(p, at.load(p) * factor); });
  std::fill(p + keys, p + n, T(0));
}

/// c (m, n) = or += op(a) (m, k) op(b) (k, n); leading dimensions follow their matrices.
template <class T>
void multiply(std::int64_t m, std::int64_t k, std::int64_t n, const T* a, std::int64_t lda,
              bool a_transposed, const T* b, std::int64_t ldb, bool b_transposed, T* c,
              std::int64_t ldc, bool accumulate, T* scratch) noexcept {
  Gemm<T> g;
  g.m = m;
  g.n = n;
  g.k = k;
  g.a = a;
  g.a_row = a_transposed ? 1 : lda;
  g.a_col = a_transposed ? lda : 1;
  g.b = b;
  g.ldb = ldb;
  g.b_transposed = b_transposed;
  g.c = c;
  g.ldc = ldc;
  if (accumulate) {
    g.init = c;
    g.init_row = ldc;
  }
  gemm(g, scratch);
}

/// p (rows, n) = the softmax of queries first..first+rows-1 over keys 0..n-1.
template <class T>
void attention_weights(const AttentionShape& a, const T* q, const T* k, std::int64_t first,
                       std::int64_t rows, std::int64_t n, T* p, T* scratch) noexcept {
  const std::int64_t ld = 3 * a.columns();
  multiply(rows, a.width, n, q + first * ld, ld, false, k, ld, true, p, n, false, scratch);
  for (std::int64_t i = 0; i < rows; ++i) {
    softmax_row(p + i * n, a.keys(first + i), n, attention_scale<T>(a));
  }
}

template <class T>
void attention_by_products(const AttentionShape& a, const T* q, T* out, T* scratch) noexcept {
  const std::int64_t c = a.columns();
  const T* k = q + c;
  const T* v = k + c;
  T* const p = scratch;
  T* const rest = p + kQueryBlock * a.length;
  for (std::int64_t i = 0; i < a.length; i += kQueryBlock) {
    const std::int64_t rows = std::min(kQueryBlock, a.length - i);
    const std::int64_t n = a.keys(i + rows - 1);
    attention_weights(a, q, k, i, rows, n, p, rest);
    multiply(rows, n, a.width, p, n, false, v, 3 * c, false, out + i * c, c, false, rest);
  }
}

template <class T>
void attention_vjp_by_products(const AttentionShape& a, const T* ct, const T* q, T* dq,
                               T* scratch) noexcept {
  const std::int64_t c = a.columns();
  const std::int64_t ld = 3 * c;
  const T* k = q + c;
  const T* v = k + c;
  T* const p = scratch;
  T* const ds = p + kQueryBlock * a.length;
  T* const rest = ds + kQueryBlock * a.length;
  for (std::int64_t t = 0; t < a.length; ++t) {
    for (int part = 1; part < 3; ++part) std::fill_n(dq + t * ld + part * c, a.width, T(0));
  }
  for (std::int64_t i = 0; i < a.length; i += kQueryBlock) {
    const std::int64_t rows = std::min(kQueryBlock, a.length - i);
    const std::int64_t n = a.keys(i + rows - 1);
    const T* g = ct + i * c;
    attention_weights(a, q, k, i, rows, n, p, rest);
    multiply(rows, a.width, n, g, c, false, v, ld, true, ds, n, false, rest);
    for (std::int64_t r = 0; r < rows; ++r) {
      const T* weights = p + r * n;
      T* slopes = ds + r * n;
      const T mean = dot(weights, slopes, n);
      const T scale = attention_scale<T>(a);
      for_each_columns<T>(n, [&](auto at) {
        at.store(slopes, at.load(weights) * (at.load(slopes) - mean) * scale);
      });
    }
    multiply(rows, n, a.width, ds, n, false, k, ld, false, dq + i * ld, ld, false, rest);
    multiply(n, rows, a.width, ds, n, true, q + i * ld, ld, false, dq + c, ld, true, rest);
    multiply(n, rows, a.width, p, n, true, g, c, false, dq + 2 * c, ld, true, rest);
  }
}

}  // namespace detail

/// Calls f(first problem, lanes) for a register's worth of problems after another.
template <class T, class F>
void for_each_lanes(const AttentionShape& a, std::int64_t samples, F&& f) noexcept {
  const std::int64_t problems = samples * a.heads;
  for (std::int64_t first = 0; first < problems; first += Pack<T>::size) {
    const auto count = static_cast<int>(std::min<std::int64_t>(Pack<T>::size, problems - first));
    f(first, detail::HeadLanes<T>(a, first, count));
  }
}

/// Elements of scratch for `attention` or `attention_vjp`.
template <class T>
std::int64_t attention_scratch(const AttentionShape& a, bool vjp) noexcept {
  if (a.in_lanes()) return attention_lane_scratch<T>(a, vjp);
  const std::int64_t block = detail::kQueryBlock;
  const std::int64_t products = std::max({gemm_scratch<T>(block, a.length, a.width, true),
                                          gemm_scratch<T>(block, a.width, a.length, false),
                                          gemm_scratch<T>(a.length, a.width, block, false)});
  return (vjp ? 2 : 1) * block * a.length + products;
}

/// out (samples, T, C) of qkv (samples, T, 3 C); qkv_sample is 0 when all samples share it.
template <class T>
void attention(const AttentionShape& a, std::int64_t samples, const T* qkv, std::int64_t qkv_sample,
               T* out, T* scratch) noexcept {
  const std::int64_t problems = samples * a.heads;
  if (a.length == 0) return;
  if (a.in_lanes()) {
    return for_each_lanes<T>(a, samples, [&](std::int64_t, const detail::HeadLanes<T>& lanes) {
      detail::attention_in_lanes(a, qkv, qkv_sample, lanes, out, scratch);
    });
  }
  for (std::int64_t problem = 0; problem < problems; ++problem) {
    const std::int64_t sample = problem / a.heads;
    const std::int64_t column = problem % a.heads * a.width;
    detail::attention_by_products(a, qkv + sample * qkv_sample + column,
                                  out + sample * a.length * a.columns() + column, scratch);
  }
}

/// out (samples, T, 3 C): the cotangents of qkv from those of the result, ct (samples, T, C).
template <class T>
void attention_vjp(const AttentionShape& a, std::int64_t samples, const T* ct,
                   std::int64_t ct_sample, const T* qkv, std::int64_t qkv_sample, T* out,
                   T* scratch) noexcept {
  const std::int64_t problems = samples * a.heads;
  if (a.length == 0) return;
  if (a.in_lanes()) {
    return for_each_lanes<T>(a, samples, [&](std::int64_t, const detail::HeadLanes<T>& lanes) {
      detail::attention_vjp_in_lanes(a, ct, ct_sample, qkv, qkv_sample, lanes, out, scratch);
    });
  }
  for (std::int64_t problem = 0; problem < problems; ++problem) {
    const std::int64_t sample = problem / a.heads;
    const std::int64_t column = problem % a.heads * a.width;
    detail::attention_vjp_by_products(a, ct + sample * ct_sample + column,
                                      qkv + sample * qkv_sample + column,
                                      out + sample * a.length * 3 * a.columns() + column, scratch);
  }
}

}  // namespace buropt
