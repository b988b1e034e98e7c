// Attention of short heads, a register's worth of problems at a time: arrays (T, width, lanes).
//
// The weights of a block of queries lie one after another, those of a query for the keys it sees:
// pair (i, j) at pairs_before(i) + j, counted from the block's first query.
#pragma once

#include <cmath>

#include "math/exp.h"
#include "math/head_lanes.h"

namespace buropt {

namespace detail {

template <class T>
T attention_scale(const AttentionShape& a) noexcept {
  return static_cast<T>(1 / std::sqrt(static_cast<double>(a.width)));
}

/// Calls f(width) with a head's width, as a constant where that is the usual one of small models.
template <class T, class F>
BUROPT_INLINE void with_width(const AttentionShape& a, F&& f) noexcept {
  if (a.width == kPart<T>)
    f(std::integral_constant<std::int64_t, kPart<T>>());
  else
    f(a.width);
}

/// out[j] = scale * sum_f row[f] * rows[j, f] for j < n, in every lane.
template <class T, class Width>
BUROPT_INLINE void lane_products(const T* row, const T* rows, std::int64_t n, Width width, T scale,
                                 T* out) noexcept {
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

/// out[f] = or += sum_j weight(j) * rows[j, f] for j < n, in every lane; weight(j) says where it
/// is.
template <class T, class Width, class Weight>
BUROPT_INLINE void lane_combination(Weight weight, const T* rows, std::int64_t n, Width width,
                                    T* out, bool adds) noexcept {
  constexpr int kLanes = Pack<T>::size;
  constexpr int kTogether = 4;
  const auto block = [&]<int kColumns>(std::integral_constant<int, kColumns>, std::int64_t f) {
    Pack<T> sum[kColumns];
    for (Pack<T>& s : sum) s = Pack<T>(T(0));
    for (std::int64_t j = 0; j < n; ++j) {
      const Pack<T> w = Pack<T>::load(weight(j));
#pragma GCC unroll 4
      for (int c = 0; c < kColumns; ++c) {
        sum[c] = fma(w, Pack<T>::load(rows + (j * width + f + c) * kLanes), sum[c]);
      }
    }
    for (int c = 0; c < kColumns; ++c) {
      T* const to = out + (f + c) * kLanes;
      if (adds) sum[c] += Pack<T>::load(to);
      sum[c].store(to);
    }
  };
  std::int64_t f = 0;
  for (; f + kTogether <= width; f += kTogether) block(std::integral_constant<int, kTogether>(), f);
  for (; f < width; ++f) block(std::integral_constant<int, 1>(), f);
}

/// p = the weights of queries [begin, end). A NaN comes to a weight through its exponential.
template <class T, class Width>
BUROPT_INLINE void lane_weights(const AttentionShape& a, std::int64_t begin, std::int64_t end,
                                Width width, const T* q, const T* k, T* p) noexcept {
  constexpr int kLanes = Pack<T>::size;
  const std::int64_t before = a.pairs_before(begin);
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t keys = a.keys(i);
    T* const row = p + (a.pairs_before(i) - before) * kLanes;
    lane_products(q + i * width * kLanes, k, keys, width, attention_scale<T>(a), row);
    Pack<T> largest(-kInfinity<T>);
    for (std::int64_t j = 0; j < keys; ++j) largest = max(Pack<T>::load(row + j * kLanes), largest);
    for (std::int64_t j = 0; j < keys; ++j) {
      (Pack<T>::load(row + j * kLanes) - largest).store(row + j * kLanes);
    }
  }
  // All together: a single query's exponentials would wait for each other.
  const std::int64_t pairs = a.pairs_before(end) - before;
  for (std::int64_t j = 0; j < pairs; ++j) {
    exp_of_nonpositive(Pack<T>::load(p + j * kLanes)).store(p + j * kLanes);
  }
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t keys = a.keys(i);
    T* const row = p + (a.pairs_before(i) - before) * kLanes;
    Pack<T> total(T(0));
    for (std::int64_t j = 0; j < keys; ++j) total += Pack<T>::load(row + j * kLanes);
    const Pack<T> factor = T(1) / total;
    for (std::int64_t j = 0; j < keys; ++j) {
      (Pack<T>::load(row + j * kLanes) * factor).store(row + j * kLanes);
    }
  }
}

/// y = the result of queries [begin, end), whose weights are p.
template <class T, class Width>
BUROPT_INLINE void lane_results(const AttentionShape& a, std::int64_t begin, std::int64_t end,
                                Width width, const T* v, const T* p, T* y) noexcept {
  constexpr int kLanes = Pack<T>::size;
  for (std::int64_t i = begin; i < end; ++i) {
    const T* const row = p + (a.pairs_before(i) - a.pairs_before(begin)) * kLanes;
    lane_combination([&](std::int64_t j) { return row + j * kLanes; }, v, a.keys(i), width,
                     y + i * width * kLanes, false);
  }
}

/// Numbers of q, k, v or cotangents of them.
template <class T>
struct LaneRows {
  T* q;
  T* k;
  T* v;
};

/// What queries [begin, end) add to the cotangents, of which to.q is written and the others begin
/// with the first query that sees a key; g are the result's cotangents. `slopes` has the size of p.
template <class T, class Width>
BUROPT_INLINE void lane_cotangents(const AttentionShape& a, std::int64_t begin, std::int64_t end,
                                   Width width, const LaneRows<const T>& x, const T* p, const T* g,
                                   const LaneRows<T>& to, T* slopes) noexcept {
  constexpr int kLanes = Pack<T>::size;
  const std::int64_t size = width * kLanes;
  const std::int64_t before = a.pairs_before(begin);
  const Pack<T> scale(attention_scale<T>(a));
  for (std::int64_t i = begin; i < end; ++i) {
    const std::int64_t keys = a.keys(i);
    const T* const weights = p + (a.pairs_before(i) - before) * kLanes;
    T* const ds = slopes + (a.pairs_before(i) - before) * kLanes;
    lane_products(g + i * size, x.v, keys, width, T(1), ds);
    Pack<T> mean(T(0));
    for (std::int64_t j = 0; j < keys; ++j) {
      mean = fma(Pack<T>::load(weights + j * kLanes), Pack<T>::load(ds + j * kLanes), mean);
    }
    for (std::int64_t j = 0; j < keys; ++j) {
      const Pack<T> weight = Pack<T>::load(weights + j * kLanes);
      (weight * (Pack<T>::load(ds + j * kLanes) - mean) * scale).store(ds + j * kLanes);
    }
    lane_combination([&](std::int64_t j) { return ds + j * kLanes; }, x.k, keys, width,
                     to.q + i * size, false);
  }
  for (std::int64_t j = 0; j < a.keys(end - 1); ++j) {
    const std::int64_t first = std::max(begin, a.first_query(j));
    const bool adds = first > a.first_query(j);
    const auto at = [&](const T* pairs) {
      return [=, &a](std::int64_t i) {
        return pairs + (a.pairs_before(first + i) - before + j) * kLanes;
      };
    };
    const T* const q = x.q + first * size;
    lane_combination(at(slopes), q, end - first, width, to.k + j * size, adds);
    lane_combination(at(p), g + first * size, end - first, width, to.v + j * size, adds);
  }
}

/// Arrays (T, width, lanes) one after another.
template <class T>
LaneRows<T> lane_rows(const AttentionShape& a, T* at) noexcept {
  const std::int64_t size = a.length * a.width * Pack<std::remove_const_t<T>>::size;
  return {at, at + size, at + 2 * size};
}

template <class T>
void load_rows(const AttentionShape& a, const T* qkv, std::int64_t sample,
               const HeadLanes<T>& lanes, const LaneRows<T>& to, T* staged) noexcept {
  const std::int64_t c = a.columns();
  lanes.load(qkv, 3 * c, sample, to.q, staged);
  lanes.load(qkv + c, 3 * c, sample, to.k, staged);
  lanes.load(qkv + 2 * c, 3 * c, sample, to.v, staged);
}

template <class T>
void store_rows(const AttentionShape& a, const LaneRows<T>& from, const HeadLanes<T>& lanes, T* out,
                T* staged) noexcept {
  const std::int64_t c = a.columns();
  const std::int64_t sample = a.length * 3 * c;
  lanes.store(from.q, out, 3 * c, sample, staged);
  lanes.store(from.k, out + c, 3 * c, sample, staged);
  lanes.store(from.v, out + 2 * c, 3 * c, sample, staged);
}

/// Calls f(begin, end) for blocks of queries whose weights are kept together.
template <class F>
void for_each_query_block(const AttentionShape& a, F&& f) noexcept {
  for (std::int64_t begin = 0; begin < a.length; begin += a.lane_queries()) {
    f(begin, std::min(begin + a.lane_queries(), a.length));
  }
}

template <class T>
void attention_in_lanes(const AttentionShape& a, const T* qkv, std::int64_t qkv_sample,
                        const HeadLanes<T>& lanes, T* out, T* scratch) noexcept {
  const std::int64_t size = a.length * a.width * Pack<T>::size;
  const LaneRows<T> x = lane_rows(a, scratch);
  T* const y = scratch + 3 * size;
  T* const p = y + size;
  load_rows(a, qkv, qkv_sample, lanes, x, y);
  with_width<T>(a, [&](auto width) {
    for_each_query_block(a, [&](std::int64_t begin, std::int64_t end) {
      lane_weights(a, begin, end, width, x.q, x.k, p);
      lane_results(a, begin, end, width, x.v, p, y);
    });
  });
  lanes.store(y, out, a.columns(), a.length * a.columns(), x.q);
}

template <class T>
void attention_vjp_in_lanes(const AttentionShape& a, const T* ct, std::int64_t ct_sample,
                            const T* qkv, std::int64_t qkv_sample, const HeadLanes<T>& lanes,
                            T* out, T* scratch) noexcept {
  const std::int64_t size = a.length * a.width * Pack<T>::size;
  const LaneRows<T> x = lane_rows(a, scratch);
  T* const g = scratch + 3 * size;
  const LaneRows<T> dx = lane_rows(a, g + size);
  T* const p = g + 4 * size;
  T* const slopes = p + a.lane_queries() * a.length * Pack<T>::size;
  load_rows(a, qkv, qkv_sample, lanes, x, dx.q);
  lanes.load(ct, a.columns(), ct_sample, g, dx.q);
  with_width<T>(a, [&](auto width) {
    for_each_query_block(a, [&](std::int64_t begin, std::int64_t end) {
      lane_weights(a, begin, end, width, x.q, x.k, p);
      lane_cotangents<T>(a, begin, end, width, {x.q, x.k, x.v}, p, g, dx, slopes);
    });
  });
  store_rows(a, dx, lanes, out, x.q);
}

// ---- The same with a memory in between that holds q, k, v and the weights.

template <class T>
void remember_in_lanes(const AttentionShape& a, const T* qkv, std::int64_t qkv_sample,
                       const HeadLanes<T>& lanes, T* memory, T* staged) noexcept {
  const LaneRows<T> x = lane_rows(a, memory);
  T* const p = memory + 3 * a.length * a.width * Pack<T>::size;
  load_rows(a, qkv, qkv_sample, lanes, x, staged);
  with_width<T>(a, [&](auto width) { lane_weights(a, 0, a.length, width, x.q, x.k, p); });
}

template <class T>
void attention_from_memory(const AttentionShape& a, const T* memory, const HeadLanes<T>& lanes,
                           T* out, T* scratch) noexcept {
  const std::int64_t size = a.length * a.width * Pack<T>::size;
  const T* const v = lane_rows(a, memory).v;
  with_width<T>(
      a, [&](auto width) { lane_results(a, 0, a.length, width, v, memory + 3 * size, scratch); });
  lanes.store(scratch, out, a.columns(), a.length * a.columns(), scratch + size);
}

template <class T>
void attention_vjp_from_memory(const AttentionShape& a, const T* ct, std::int64_t ct_sample,
                               const T* memory, const HeadLanes<T>& lanes, T* out,
                               T* scratch) noexcept {
  const std::int64_t size = a.length * a.width * Pack<T>::size;
  const LaneRows<const T> x = lane_rows(a, memory);
  T* const g = scratch;
  const LaneRows<T> dx = lane_rows(a, g + size);
  T* const slopes = g + 4 * size;
  lanes.load(ct, a.columns(), ct_sample, g, dx.q);
  with_width<T>(a, [&](auto width) {
    lane_cotangents<T>(a, 0, a.length, width, x, memory + 3 * size, g, dx, slopes);
  });
  store_rows(a, dx, lanes, out, g);
}

}  // namespace detail

/// Elements of scratch for either.
template <class T>
std::int64_t attention_lane_scratch(const AttentionShape& a, bool vjp) noexcept {
  const std::int64_t arrays = vjp ? 7 : 4;
  const std::int64_t vectors = (vjp ? 2 : 1) * a.lane_queries();
  return (arrays * a.width + vectors) * a.length * Pack<T>::size;
}

}  // namespace buropt
