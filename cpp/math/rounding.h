// Rounding to whole numbers, and the remainders that go with it.
#pragma once

#include <cmath>

#include "base/simd.h"
#include "math/by_lane.h"

namespace buropt {

// One instruction on scalars and on packs; the sign of a zero stays.
BUROPT_INLINE float floor(float x) noexcept { return __builtin_floorf(x); }
BUROPT_INLINE double floor(double x) noexcept { return __builtin_floor(x); }
BUROPT_INLINE float ceil(float x) noexcept { return __builtin_ceilf(x); }
BUROPT_INLINE double ceil(double x) noexcept { return __builtin_ceil(x); }
BUROPT_INLINE float trunc(float x) noexcept { return __builtin_truncf(x); }
BUROPT_INLINE double trunc(double x) noexcept { return __builtin_trunc(x); }
// To the nearest whole number, a half to the even one.
BUROPT_INLINE float rint(float x) noexcept { return __builtin_rintf(x); }
BUROPT_INLINE double rint(double x) noexcept { return __builtin_rint(x); }

template <class T>
BUROPT_INLINE Pack<T> floor(Pack<T> x) noexcept {
  for (int i = 0; i < Pack<T>::size; ++i) x.v[i] = floor(x.v[i]);
  return x;
}
template <class T>
BUROPT_INLINE Pack<T> ceil(Pack<T> x) noexcept {
  for (int i = 0; i < Pack<T>::size; ++i) x.v[i] = ceil(x.v[i]);
  return x;
}
template <class T>
BUROPT_INLINE Pack<T> trunc(Pack<T> x) noexcept {
  for (int i = 0; i < Pack<T>::size; ++i) x.v[i] = trunc(x.v[i]);
  return x;
}
template <class T>
BUROPT_INLINE Pack<T> rint(Pack<T> x) noexcept {
  for (int i = 0; i < Pack<T>::size; ++i) x.v[i] = rint(x.v[i]);
  return x;
}

namespace detail {

// NumPy's pair floor_divide and remainder: the remainder has the divisor's sign, and is exact
// unless the divisor had to be added.
struct FloorDivision {
  double quotient;
  double remainder;
};
FloorDivision floor_division(double a, double b) noexcept;

}  // namespace detail

// a - b trunc(a / b), exactly; it has the sign of a.
template <Real T>
BUROPT_INLINE T fmod(T a, T b) noexcept {
  return by_lane([](double x, double y) noexcept { return std::fmod(x, y); }, a, b);
}
// a - b floor(a / b).
template <Real T>
BUROPT_INLINE T remainder(T a, T b) noexcept {
  return by_lane([](double x, double y) noexcept { return detail::floor_division(x, y).remainder; },
                 a, b);
}
// floor(a / b) of the quotient before it is rounded.
template <Real T>
BUROPT_INLINE T floor_divide(T a, T b) noexcept {
  return by_lane([](double x, double y) noexcept { return detail::floor_division(x, y).quotient; },
                 a, b);
}

}  // namespace buropt
