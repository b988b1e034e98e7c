// A function of one number at a time, lifted to packs.
//
// It is computed in double for both dtypes and rounded, so a float result is as good as it can be.
// The function should be one that is not inlined (of the C library, or of a .cpp of this folder):
// then a lane of a pack and a number alone run the same instructions and agree in every bit.
#pragma once

#include <concepts>

#include "base/simd.h"

namespace buropt {

template <class F, ScalarFloat T, std::same_as<T>... More>
BUROPT_INLINE T by_lane(F f, T x, More... more) noexcept {
  return static_cast<T>(f(static_cast<double>(x), static_cast<double>(more)...));
}

template <class F, class T>
Pack<T> by_lane(F f, Pack<T> x) noexcept {
  alignas(BUROPT_VECTOR_BYTES) T lanes[Pack<T>::size];
  x.store(lanes);
#pragma GCC unroll 1
  for (T& lane : lanes) lane = by_lane(f, lane);
  return Pack<T>::load(lanes);
}

template <class F, class T>
Pack<T> by_lane(F f, Pack<T> x, Pack<T> y) noexcept {
  alignas(BUROPT_VECTOR_BYTES) T lanes[Pack<T>::size];
  alignas(BUROPT_VECTOR_BYTES) T others[Pack<T>::size];
  x.store(lanes);
  y.store(others);
#pragma GCC unroll 1
  for (int i = 0; i < Pack<T>::size; ++i) lanes[i] = by_lane(f, lanes[i], others[i]);
  return Pack<T>::load(lanes);
}

}  // namespace buropt
