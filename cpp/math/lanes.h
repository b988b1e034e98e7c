// Vectors of any power-of-two width up to a register, for kernels that sweep rows of n columns.
//
// Pack is a whole register; a matrix with 3 or 10 columns needs narrower vectors. Rows are covered
// without masks: the widest vector with at most n lanes is chosen, and the last vector of a row is
// moved left until it ends at column n. It may overlap its neighbour: lanes in the overlap hold the
// same bits twice, since each lane is summed in an order that does not depend on its column. A
// kernel that adds to memory must therefore load all vectors of a strip before it stores one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "base/simd.h"

namespace buropt {

namespace detail {

template <class T, int kLanes>
struct LanesOf {
  typedef T Vector __attribute__((vector_size(static_cast<std::size_t>(kLanes) * sizeof(T))));
  typedef T Unaligned __attribute__((vector_size(static_cast<std::size_t>(kLanes) * sizeof(T)),
                                     aligned(alignof(T)), may_alias));
};
template <class T>
struct LanesOf<T, 1> {
  using Vector = T;
  using Unaligned = T;
};

}  // namespace detail

/// kLanes numbers as a compiler vector; a plain T when kLanes is 1. All operators apply, also
/// between a vector and a scalar; V{} is zero.
template <class T, int kLanes>
using Lanes = typename detail::LanesOf<T, kLanes>::Vector;

template <class T, int kLanes>
BUROPT_INLINE Lanes<T, kLanes> load_lanes(const T* p) noexcept {
  return *reinterpret_cast<const typename detail::LanesOf<T, kLanes>::Unaligned*>(p);
}

template <class T, int kLanes>
BUROPT_INLINE void store_lanes(T* p, Lanes<T, kLanes> v) noexcept {
  *reinterpret_cast<typename detail::LanesOf<T, kLanes>::Unaligned*>(p) = v;
}

/// sum + a * b; b may be a scalar. Scalars ask for fma by name: left to itself, a compiler that
/// vectorizes a loop of scalar sums may do the products apart and round them, in some loops only.
template <class V, class Factor>
BUROPT_INLINE V multiply_add(V a, Factor b, V sum) noexcept {
#ifdef __FMA__
  if constexpr (std::is_same_v<V, double>) return __builtin_fma(a, b, sum);
  if constexpr (std::is_same_v<V, float>) return __builtin_fmaf(a, b, sum);
#endif
  return a * b + sum;
}

/// Vector registers of the target, which bound the size of register blocks.
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kRegisters = 32;
#else
inline constexpr int kRegisters = 16;
#endif

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Part `index` of n things dealt out to `parts` as evenly as possible: where it begins.
constexpr std::int64_t part_begin(std::int64_t n, std::int64_t parts, std::int64_t index) {
  return n / parts * index + std::min(index, n % parts);
}

/// Columns [begin, begin + width) of a row, as kPacks vectors of kLanes.
template <int lanes, int packs>
struct Strip {
  static constexpr int kLanes = lanes;
  static constexpr int kPacks = packs;

  std::int64_t begin;
  std::int64_t width;

  /// First column of vector p, counted from `begin`.
  BUROPT_INLINE std::int64_t offset(int p) const noexcept {
    return p + 1 < kPacks ? p * kLanes : width - kLanes;
  }
};

namespace detail {

template <int kLanes, int kPacks, class F>
BUROPT_INLINE void call_with_strip(std::int64_t packs, std::int64_t begin, std::int64_t width,
                                   F&& f) noexcept {
  if constexpr (kPacks > 1) {
    if (packs < kPacks) return call_with_strip<kLanes, kPacks - 1>(packs, begin, width, f);
  }
  f(Strip<kLanes, kPacks>{begin, width});
}

// Fewer columns than a register has lanes: one or two vectors of half the width, or less.
template <int kLanes, class F>
BUROPT_INLINE void call_with_narrow_strip(std::int64_t n, F&& f) noexcept {
  if constexpr (kLanes > 1) {
    if (n < kLanes) return call_with_narrow_strip<kLanes / 2>(n, f);
  }
  call_with_strip<kLanes, kLanes == 1 ? 1 : 2>(ceil_div(n, kLanes), 0, n, f);
}

}  // namespace detail

/// Cuts n columns into strips of at most max_packs vectors, as even as possible, and calls f(strip)
/// for each, where the type of strip says how many vectors of how many lanes. 3 <= max_packs <=
/// kMaxPacks: then only a row of exactly one register gets a strip of one full-width vector, and
/// every other last vector overlaps a neighbour of its own strip.
template <class T, int kMaxPacks, class F>
BUROPT_INLINE void for_each_strip(std::int64_t n, std::int64_t max_packs, F&& f) noexcept {
  constexpr int kLanes = Pack<T>::size;
  static_assert(kMaxPacks >= 3 && kLanes >= 2);
  if (n <= 0) return;
  if (n < kLanes) return detail::call_with_narrow_strip<kLanes / 2>(n, f);
  const std::int64_t packs = ceil_div(n, kLanes);
  if (packs <= max_packs) return detail::call_with_strip<kLanes, kMaxPacks>(packs, 0, n, f);
  const std::int64_t strips = ceil_div(packs, max_packs);
  const std::int64_t least = packs / strips;
  const std::int64_t wider = packs - least * strips;
  std::int64_t begin = 0;
  for (std::int64_t s = 0; s < strips; ++s) {
    const std::int64_t count = s < wider ? least + 1 : least;
    const std::int64_t width = std::min(n - begin, count * kLanes);
    detail::call_with_strip<kLanes, kMaxPacks>(count, begin, width, f);
    begin += width;
  }
}

}  // namespace buropt
