// Attention of short heads, a register's worth of problems at a time.
//
// A problem is one head of one sample. Its numbers are one lane of registers, so that no sum runs
// across lanes: arrays (T, width) of problems are arrays (T, width, lanes) here.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "math/exp.h"
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
  /// The first query that sees a key.
  std::int64_t first_query(std::int64_t key) const noexcept { return causal ? key : 0; }
  /// Whether problems go into lanes: then everything a head needs stays in the second-level cache.
  bool in_lanes() const noexcept { return length * width <= 1024; }
  /// Queries whose weights are kept until the keys' cotangents take them.
  std::int64_t lane_queries() const noexcept {
    return std::clamp<std::int64_t>(1024 / std::max<std::int64_t>(length, 1), 1, 8);
  }
};

namespace detail {

template <class T>
T attention_scale(const AttentionShape& a) noexcept {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(a.width)));
}

/// kLanes rows of kPart numbers, one after another, as kPart registers: number i of every row in
/// register i, rows in a fixed order of their own. Shuffles stay within 128 bits.
template <class T>
BUROPT_INLINE void rows_to_lanes(std::array<Lanes<T, Pack<T>::size>, kPart<T>>& rows) noexcept {
  constexpr auto kAll = std::make_index_sequence<Pack<T>::size>();
#pragma GCC unroll 2
  for (int round = 1; round < kPart<T>; round *= 2) {
    std::array<Lanes<T, Pack<T>::size>, kPart<T>> next;
#pragma GCC unroll 2
    for (std::size_t i = 0; i < kPart<T> / 2; ++i) {
      next[2 * i] = interleave<kPart<T>, 0>(rows[i], rows[i + kPart<T> / 2], kAll);
      next[2 * i + 1] = interleave<kPart<T>, 1>(rows[i], rows[i + kPart<T> / 2], kAll);
    }
    rows = next;
  }
}

/// Problems first..first+count-1, one for each lane.
template <class T>
class HeadLanes {
 public:
  static constexpr int kLanes = Pack<T>::size;

  HeadLanes(const AttentionShape& shape, std::int64_t first, int count) noexcept
      : shape_(shape), count_(count) {
    for (int lane = 0; lane < count;) {
      const std::int64_t head = (first + lane) % shape.heads;
      const std::int64_t heads = std::min<std::int64_t>(shape.heads - head, count - lane);
      runs_[static_cast<std::size_t>(n_runs_++)] = {(first + lane) / shape.heads,
                                                    head * shape.width, heads * shape.width};
      lane += static_cast<int>(heads);
    }
  }

  /// lanes (T, width, kLanes) = the heads' part of a matrix whose rows are `row` elements apart and
  /// whose samples are `sample` elements apart. `staged` has the size of `lanes`.
  void load(const T* from, std::int64_t row, std::int64_t sample, T* lanes,
            T* staged) const noexcept {
    const std::int64_t size = kLanes * shape_.width;
    if (count_ < kLanes) std::fill_n(staged, shape_.length * size, T(0));
    for_each_piece(row, sample, [&](std::int64_t place, std::int64_t at, std::int64_t n) {
      copy_columns(from + place, staged + at, n);
    });
    for (std::int64_t t = 0; t < shape_.length; ++t) to_lanes(staged + t * size, lanes + t * size);
  }
  void store(const T* lanes, T* to, std::int64_t row, std::int64_t sample,
             T* staged) const noexcept {
    const std::int64_t size = kLanes * shape_.width;
    for (std::int64_t t = 0; t < shape_.length; ++t)
      from_lanes(lanes + t * size, staged + t * size);
    for_each_piece(row, sample, [&](std::int64_t place, std::int64_t at, std::int64_t n) {
      copy_columns(staged + at, to + place, n);
    });
  }

 private:
  /// Heads of one sample.
  struct Run {
    std::int64_t sample;
    std::int64_t column;
    std::int64_t columns;
  };

  /// Calls f(place in the matrix, place among the staged rows, number of elements).
  template <class F>
  BUROPT_INLINE void for_each_piece(std::int64_t row, std::int64_t sample, F&& f) const noexcept {
    std::int64_t at = 0;
    for (int r = 0; r < n_runs_; ++r) {
      const Run& run = runs_[static_cast<std::size_t>(r)];
      const std::int64_t place = run.sample * sample + run.column;
      for (std::int64_t t = 0; t < shape_.length; ++t) {
        f(place + t * row, at + t * kLanes * shape_.width, run.columns);
      }
      at += run.columns;
    }
  }

  /// (kLanes, width) to (width, kLanes), and back. Which lane is whose does not matter.
  void to_lanes(const T* staged, T* lanes) const noexcept {
    if (shape_.width != kPart<T>)
      return transpose(kLanes, shape_.width, staged, shape_.width, lanes, kLanes);
    std::array<Lanes<T, kLanes>, kPart<T>> rows;
    for (std::size_t i = 0; i < kPart<T>; ++i) rows[i] = load_lanes<T, kLanes>(staged + i * kLanes);
    rows_to_lanes<T>(rows);
    for (std::size_t i = 0; i < kPart<T>; ++i) store_lanes<T, kLanes>(lanes + i * kLanes, rows[i]);
  }
  void from_lanes(const T* lanes, T* staged) const noexcept {
    // The same shuffles: within 128 bits they are their own inverse.
    if (shape_.width == kPart<T>) return to_lanes(lanes, staged);
    transpose(shape_.width, kLanes, lanes, kLanes, staged, shape_.width);
  }

  AttentionShape shape_;
  int count_;
  int n_runs_ = 0;
  std::array<Run, kLanes> runs_;
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

/// out[f] = or += factor * sum_j weights[j] * rows[j, f], in every lane; weights are `stride`
/// registers apart.
template <class T>
BUROPT_INLINE void lane_combination(const T* weights, std::int64_t stride, const T* rows,
                                    std::int64_t n, std::int64_t width, Pack<T> factor, T* out,
                                    bool adds) noexcept {
  constexpr int kLanes = Pack<T>::size;
  constexpr int kTogether = 4;
  const auto block = [&]<int kColumns>(std::integral_constant<int, kColumns>, std::int64_t f) {
    Pack<T> sum[kColumns];
    for (Pack<T>& s : sum) s = Pack<T>(T(0));
    for (std::int64_t j = 0; j < n; ++j) {
      const Pack<T> weight = Pack<T>::load(weights + j * stride * kLanes);
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        sum[c] = fma(weight, Pack<T>::load(rows + (j * width + f + c) * kLanes), sum[c]);
      }
    }
    for (int c = 0; c < kColumns; ++c) {
      T* const to = out + (f + c) * kLanes;
      const Pack<T> before = adds ? Pack<T>::load(to) : Pack<T>(T(0));
      fma(sum[c], factor, before).store(to);
    }
  };
  std::int64_t f = 0;
  for (; f + kTogether <= width; f += kTogether) block(std::integral_constant<int, kTogether>(), f);
  for (; f < width; ++f) block(std::integral_constant<int, 1>(), f);
}

/// p[j] = exp(p[j] - max p) for j < n; gives the sum, to which a NaN comes through its exponential.
template <class T>
BUROPT_INLINE Pack<T> lane_exponentials(T* p, std::int64_t n) noexcept {
  constexpr int kLanes = Pack<T>::size;
  Pack<T> largest(-kInfinity<T>);
  for (std::int64_t j = 0; j < n; ++j) largest = max(Pack<T>::load(p + j * kLanes), largest);
  Pack<T> total(T(0));
  for (std::int64_t j = 0; j < n; ++j) {
    const Pack<T> e = exp_of_nonpositive(Pack<T>::load(p + j * kLanes) - largest);
    total += e;
    e.store(p + j * kLanes);
  }
  return total;
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
  lanes.load(qkv, 3 * c, qkv_sample, q, y);
  lanes.load(qkv + c, 3 * c, qkv_sample, k, y);
  lanes.load(qkv + 2 * c, 3 * c, qkv_sample, v, y);
  for (std::int64_t i = 0; i < a.length; ++i) {
    const std::int64_t at = i * a.width * kLanes;
    const std::int64_t keys = a.keys(i);
    lane_products(q + at, k, keys, a.width, attention_scale<T>(a), p);
    const Pack<T> total = lane_exponentials(p, keys);
    lane_combination(p, 1, v, keys, a.width, T(1) / total, y + at, false);
  }
  lanes.store(y, out, c, a.length * c, q);
}

template <class T>
void attention_vjp_in_lanes(const AttentionShape& a, const T* ct, std::int64_t ct_sample,
                            const T* qkv, std::int64_t qkv_sample, const HeadLanes<T>& lanes,
                            T* out, T* scratch) noexcept {
  constexpr int kLanes = Pack<T>::size;
  const Pack<T> one(T(1));
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
  T* const weights = dv + size;  // (queries of a block, T)
  T* const slopes = weights + a.lane_queries() * a.length * kLanes;
  lanes.load(qkv, 3 * c, qkv_sample, q, dq);
  lanes.load(qkv + c, 3 * c, qkv_sample, k, dq);
  lanes.load(qkv + 2 * c, 3 * c, qkv_sample, v, dq);
  lanes.load(ct, c, ct_sample, g, dq);
  for (std::int64_t begin = 0; begin < a.length; begin += a.lane_queries()) {
    const std::int64_t end = std::min(begin + a.lane_queries(), a.length);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t at = i * a.width * kLanes;
      const std::int64_t keys = a.keys(i);
      T* const p = weights + (i - begin) * a.length * kLanes;
      T* const ds = slopes + (i - begin) * a.length * kLanes;
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
        (weight * (Pack<T>::load(ds + j * kLanes) - mean) * scale).store(ds + j * kLanes);
      }
      lane_combination(ds, 1, k, keys, a.width, one, dq + at, false);
    }
    for (std::int64_t j = 0; j < a.keys(end - 1); ++j) {
      const std::int64_t first = std::max(begin, a.first_query(j));
      const std::int64_t from = ((first - begin) * a.length + j) * kLanes;
      const std::int64_t at = first * a.width * kLanes;
      const std::int64_t to = j * a.width * kLanes;
      const bool adds = first > a.first_query(j);
      lane_combination(slopes + from, a.length, q + at, end - first, a.width, one, dk + to, adds);
      lane_combination(weights + from, a.length, g + at, end - first, a.width, one, dv + to, adds);
    }
  }
  lanes.store(dq, out, 3 * c, a.length * 3 * c, q);
  lanes.store(dk, out + c, 3 * c, a.length * 3 * c, q);
  lanes.store(dv, out + 2 * c, 3 * c, a.length * 3 * c, q);
}

}  // namespace detail

/// Elements of scratch for either.
template <class T>
std::int64_t attention_lane_scratch(const AttentionShape& a, bool vjp) noexcept {
  const std::int64_t arrays = vjp ? 7 : 4;
  const std::int64_t vectors = vjp ? 2 * a.lane_queries() : 1;
  return (arrays * a.width + vectors) * a.length * Pack<T>::size;
}

}  // namespace buropt
