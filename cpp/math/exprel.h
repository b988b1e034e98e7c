// exprel and the Box-Cox transform, one number at a time; see exprel.cpp.
#pragma once

#include "base/simd.h"
#include "math/by_lane.h"

namespace buropt {
namespace detail {

double exprel(double x, int n) noexcept;
double boxcox(double x, double power) noexcept;
double inv_boxcox(double y, double power) noexcept;
double log1prel(double x, int n) noexcept;

}  // namespace detail

// The n-th derivative of (e^x - 1) / x: the integral of t^n e^(x t) over [0, 1].
template <Real T>
BUROPT_INLINE T exprel(T x, int n) noexcept {
  return by_lane([n](double lane) noexcept { return detail::exprel(lane, n); }, x);
}
// The integral of t^n / (1 + x t)^(n + 1) over [0, 1]; of n = 0 it is log(1 + x) / x.
template <Real T>
BUROPT_INLINE T log1prel(T x, int n) noexcept {
  return by_lane([n](double lane) noexcept { return detail::log1prel(lane, n); }, x);
}
// (x^power - 1) / power, log x for power 0; and its inverse function.
template <Real T>
BUROPT_INLINE T boxcox(T x, T power) noexcept {
  return by_lane(detail::boxcox, x, power);
}
template <Real T>
BUROPT_INLINE T inv_boxcox(T y, T power) noexcept {
  return by_lane(detail::inv_boxcox, y, power);
}

}  // namespace buropt
