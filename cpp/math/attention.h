// Softmax attention of many heads: out = softmax(scale Q K' + mask) V for each head of each sample.
//
// A sample is a matrix of T rows; row t holds q, k and v of position t, each of them all heads one
// after another. A problem is one head of one sample. Short heads are done a register's worth of
// problems at a time: their numbers are transposed into lanes, and no sum runs across lanes. Long
// heads are matrix products over blocks of queries, so memory grows with T and not with T^2. Which
// way is taken depends on the shape alone, and so does every order of summation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "math/dot.h"
#include "math/exp.h"
#include "math/gemm.h"
#include "math/rows.h"
#include "math/transpose.h"

namespace buropt {

struct AttentionShape {
  std::int64_t length;  ///< T
  std::int64_t heads;
  std::int64_t width;  ///< of a head
  bool causal;         ///< position t sees positions 0..t only

  std::int64_t columns() const noexcept { return heads * width; }
  std::int64_t keys(std::int64_t query) const noexcept { return causal ? query + 1 : length; }
  /// Whether problems go into lanes: then everything a head needs stays in the second-level cache.
  bool in_lanes() const noexcept { return length * width <= 1024; }
};

namespace detail {

inline constexpr std::int64_t kQueryBlock = 64;

/// Problems first..first+count-1, one for each lane.
template <class T>
struct HeadLanes {
  static constexpr int kLanes = Pack<T>::size;
  const AttentionShape& shape;
  std::int64_t first;
  int count;

  /// Calls f(sample, head, number of heads, lane) for runs of heads of one sample.
  template <class F>
  void for_each_run(F&& f) const noexcept {
    for (int lane = 0; lane < count;) {
      const std::int64_t problem = first + lane;
      const std::int64_t head = problem % shape.heads;
      const std::int64_t run = std::min<std::int64_t>(shape.heads - head, count - lane);
      f(problem / shape.heads, head, run, lane);
      lane += static_cast<int>(run);
    }
  }

  /// lanes (T, width, kLanes) = the heads' part of a matrix whose rows are `row` elements apart and
  /// whose samples are `sample` elements apart.
  void load(const T* from, std::int64_t row, std::int64_t sample, T* lanes) const noexcept {
    const std::int64_t width = shape.width;
    if (count < kLanes) std::fill_n(lanes, shape.length * width * kLanes, T(0));
    for_each_run([&](std::int64_t s, std::int64_t head, std::int64_t run, int lane) {
      const T* at = from + s * sample + head * width;
      for (std::int64_t t = 0; t < shape.length; ++t) {
        transpose(run, width, at + t * row, width, lanes + t * width * kLanes + lane, kLanes);
      }
    });
  }
  void store(const T* lanes, T* to, std::int64_t row, std::int64_t sample) const noexcept {
    const std::int64_t width = shape.width;
    for_each_run([&](std::int64_t s, std::int64_t head, std::int64_t run, int lane) {
      T* at = to + s * sample + head * width;
      for (std::int64_t t = 0; t < shape.length; ++t) {
        transpose(width, run, lanes + t * width * kLanes + lane, kLanes, at + t * row, width);
      }
    });
  }
};

/// out[j] = scale * sum_f row[f] * rows[j, f] for j < n, in every lane.
template <class T>
BUROPT_INLINE void lane_products(const T* row, const T* rows, std::int64_t n, std::int64_t width,
                                 T scale, T* out) noexcept {
  constexpr int kLanes = Pack<T>::size;
  constexpr int kTogether = 4;
  const auto block = [&]<int kRows>(std::integral_constant<int, kRows>, std::int64_t j) {
    Pack<T> sum[kRows];
    for (Pack<T>& s : sum) s = Pack<T>(T(0));
    for (std::int64_t f = 0; f < width; ++f) {
      const Pack<T> factor = Pack<T>::load(row + f * kLanes);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        sum[r] = fma(factor, Pack<T>::load(rows + ((j + r) * width + f) * kLanes), sum[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) (sum[r] * scale).store(out + (j + r) * kLanes);
  };
  std::int64_t j = 0;
  for (; j + kTogether <= n; j += kTogether) block(std::integral_constant<int, kTogether>(), j);
  for (; j < n; ++j) block(std::integral_constant<int, 1>(), j);
}

/// out[f] = factor * sum_j weights[j] * rows[j, f], in every lane.
template <class T>
BUROPT_INLINE void lane_combination(const T* weights, const T* rows, std::int64_t n,
                                    std::int64_t width, Pack<T> factor, T* out) noexcept {
  constexpr int kLanes = Pack<T>::size;
  constexpr int kTogether = 4;
  const auto block = [&]<int kColumns>(std::integral_constant<int, kColumns>, std::int64_t f) {
    Pack<T> sum[kColumns];
    for (Pack<T>& s : sum) s = Pack<T>(T(0));
    for (std::int64_t j = 0; j < n; ++j) {
      const Pack<T> weight = Pack<T>::load(weights + j * kLanes);
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        sum[c] = fma(weight, Pack<T>::load(rows + (j * width + f + c) * kLanes), sum[c]);
      }
    }
    for (int c = 0; c < kColumns; ++c) (sum[c] * factor).store(out + (f + c) * kLanes);
  };
  std::int64_t f = 0;
  for (; f + kTogether <= width; f += kTogether) block(std::integral_constant<int, kTogether>(), f);
  for (; f < width; ++f) block(std::integral_constant<int, 1>(), f);
}

/// p[j] = exp(p[j] - max p) for j < n; gives the sum.
template <class T>
BUROPT_INLINE Pack<T> lane_exponentials(T* p, std::int64_t n) noexcept {
  constexpr int kLanes = Pack<T>::size;
  Pack<T> max(-kInfinity<T>);
  for (std::int64_t j = 0; j < n; ++j) max = maximum(max, Pack<T>::load(p + j * kLanes));
  Pack<T> total(T(0));
  for (std::int64_t j = 0; j < n; ++j) {
    const Pack<T> e = exp(Pack<T>::load(p + j * kLanes) - max);
    total += e;
    e.store(p + j * kLanes);
  }
  return total;
}

/// p[0..keys) = softmax(scale p[0..keys)), p[keys..n) = 0.
template <class T>
void softmax_row(T* p, std::int64_t keys, std::int64_t n, T scale) noexcept {
  Pack<T> max(-kInfinity<T>);
  for_each_columns<T>(keys, [&](auto at) {
    const Pack<T> x = at.load(p) * scale;
    max = maximum(max, at.within(x, -kInfinity<T>));
  });
  const T m = fold_lanes(max, Maximum());
  Pack<T> sum(T(0));
  for_each_columns<T>(keys, [&](auto at) {
    const Pack<T> e = exp(at.load(p) * scale - m);
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

template <class T>
T attention_scale(const AttentionShape& a) noexcept {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(a.width)));
}

template <class T>
void attention_in_lanes(const AttentionShape& a, const T* qkv, std::int64_t qkv_sample,
                        const HeadLanes<T>& lanes, T* out, T* scratch) noexcept {
  constexpr int kLanes = Pack<T>::size;
  const std::int64_t c = a.columns();
  const std::int64_t size = a.length * a.width * kLanes;
  T* const q = scratch;
  T* const k = q + size;
  T* const v = k + size;
  T* const y = v + size;
  T* const p = y + size;
  lanes.load(qkv, 3 * c, qkv_sample, q);
  lanes.load(qkv + c, 3 * c, qkv_sample, k);
  lanes.load(qkv + 2 * c, 3 * c, qkv_sample, v);
  for (std::int64_t i = 0; i < a.length; ++i) {
    const std::int64_t at = i * a.width * kLanes;
    const std::int64_t keys = a.keys(i);
    lane_products(q + at, k, keys, a.width, attention_scale<T>(a), p);
    const Pack<T> total = lane_exponentials(p, keys);
    lane_combination(p, v, keys, a.width, T(1) / total, y + at);
  }
  lanes.store(y, out, c, a.length * c);
}

template <class T>
void attention_vjp_in_lanes(const AttentionShape& a, const T* ct, std::int64_t ct_sample,
                            const T* qkv, std::int64_t qkv_sample, const HeadLanes<T>& lanes,
                            T* out, T* scratch) noexcept {
  constexpr int kLanes = Pack<T>::size;
  const std::int64_t c = a.columns();
  const std::int64_t size = a.length * a.width * kLanes;
  const T scale = attention_scale<T>(a);
  T* const q = scratch;
  T* const k = q + size;
  T* const v = k + size;
  T* const g = v + size;
  T* const dq = g + size;
  T* const dk = dq + size;
  T* const dv = dk + size;
  T* const p = dv + size;
  T* const ds = p + a.length * kLanes;
  lanes.load(qkv, 3 * c, qkv_sample, q);
  lanes.load(qkv + c, 3 * c, qkv_sample, k);
  lanes.load(qkv + 2 * c, 3 * c, qkv_sample, v);
  lanes.load(ct, c, ct_sample, g);
  std::fill_n(dk, 2 * size, T(0));
  for (std::int64_t i = 0; i < a.length; ++i) {
    const std::int64_t at = i * a.width * kLanes;
    const std::int64_t keys = a.keys(i);
    lane_products(q + at, k, keys, a.width, scale, p);
    const Pack<T> factor = T(1) / lane_exponentials(p, keys);
    lane_products(g + at, v, keys, a.width, T(1), ds);
    Pack<T> mean(T(0));
    for (std::int64_t j = 0; j < keys; ++j) {
      const Pack<T> weight = Pack<T>::load(p + j * kLanes) * factor;
      weight.store(p + j * kLanes);
      mean = fma(weight, Pack<T>::load(ds + j * kLanes), mean);
    }
    for (std::int64_t j = 0; j < keys; ++j) {
      const Pack<T> weight = Pack<T>::load(p + j * kLanes);
      const Pack<T> slope = weight * (Pack<T>::load(ds + j * kLanes) - mean) * scale;
      slope.store(ds + j * kLanes);
      for (std::int64_t f = 0; f < a.width; ++f) {
        T* const to_k = dk + (j * a.width + f) * kLanes;
        T* const to_v = dv + (j * a.width + f) * kLanes;
        fma(slope, Pack<T>::load(q + at + f * kLanes), Pack<T>::load(to_k)).store(to_k);
        fma(weight, Pack<T>::load(g + at + f * kLanes), Pack<T>::load(to_v)).store(to_v);
      }
    }
    lane_combination(ds, k, keys, a.width, Pack<T>(T(1)), dq + at);
  }
  lanes.store(dq, out, 3 * c, a.length * 3 * c);
  lanes.store(dk, out + c, 3 * c, a.length * 3 * c);
  lanes.store(dv, out + 2 * c, 3 * c, a.length * 3 * c);
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

/// Elements of scratch for `attention` or `attention_vjp`.
template <class T>
std::int64_t attention_scratch(const AttentionShape& a, bool vjp) noexcept {
  if (a.in_lanes()) {
    const std::int64_t arrays = vjp ? 7 : 4;
    const std::int64_t vectors = vjp ? 2 : 1;
    return (arrays * a.width + vectors) * a.length * Pack<T>::size;
  }
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
    for (std::int64_t first = 0; first < problems; first += Pack<T>::size) {
      const auto count = static_cast<int>(std::min<std::int64_t>(Pack<T>::size, problems - first));
      detail::attention_in_lanes(a, qkv, qkv_sample, detail::HeadLanes<T>{a, first, count}, out,
                                 scratch);
    }
    return;
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
    for (std::int64_t first = 0; first < problems; first += Pack<T>::size) {
      const auto count = static_cast<int>(std::min<std::int64_t>(Pack<T>::size, problems - first));
      detail::attention_vjp_in_lanes(a, ct, ct_sample, qkv, qkv_sample,
                                     detail::HeadLanes<T>{a, first, count}, out, scratch);
    }
    return;
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
