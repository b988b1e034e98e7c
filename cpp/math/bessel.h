// Bessel functions of whole orders, one number at a time; see bessel.cpp. And sinc.
#pragma once

#include "base/simd.h"
#include "math/by_lane.h"

namespace buropt {
namespace detail {

double iv(double x, int n) noexcept;
double ive(double x, int n) noexcept;
double spherical_jn(double x, int n) noexcept;
double sinc(double x) noexcept;

}  // namespace detail

// The modified Bessel function of the first kind of order n >= 0, and the same times e^-|x|.
template <Real T>
BUROPT_INLINE T iv(T x, int n) noexcept {
  return by_lane([n](double lane) noexcept { return detail::iv(lane, n); }, x);
}
template <Real T>
BUROPT_INLINE T ive(T x, int n) noexcept {
  return by_lane([n](double lane) noexcept { return detail::ive(lane, n); }, x);
}
// The spherical Bessel function of order n >= 0; of order 0 it is sin(x) / x.
template <Real T>
BUROPT_INLINE T spherical_jn(T x, int n) noexcept {
  return by_lane([n](double lane) noexcept { return detail::spherical_jn(lane, n); }, x);
}
// sin(pi x) / (pi x), 0 at whole numbers but 0.
template <Real T>
BUROPT_INLINE T sinc(T x) noexcept {
  return by_lane(detail::sinc, x);
}

}  // namespace buropt
