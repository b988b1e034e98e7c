// The gamma function and its relatives, one number at a time; see gamma.cpp.
#pragma once

#include "base/simd.h"
#include "math/by_lane.h"

namespace buropt {
namespace detail {

double gamma(double x) noexcept;
double gammaln(double x) noexcept;
double polygamma(double x, int n) noexcept;
double beta(double a, double b) noexcept;
double betaln(double a, double b) noexcept;

}  // namespace detail

template <Real T>
BUROPT_INLINE T gamma(T x) noexcept {
  return by_lane(detail::gamma, x);
}
// log |gamma(x)|. Below 0 it is right to rounding of its terms, for x > -20 of 1.
template <Real T>
BUROPT_INLINE T gammaln(T x) noexcept {
  return by_lane(detail::gammaln, x);
}
// The n-th derivative of digamma = gamma' / gamma, n >= 0.
template <Real T>
BUROPT_INLINE T polygamma(T x, int n) noexcept {
  return by_lane([n](double lane) noexcept { return detail::polygamma(lane, n); }, x);
}
// gamma(a) gamma(b) / gamma(a + b), and the logarithm of its size.
template <Real T>
BUROPT_INLINE T beta(T a, T b) noexcept {
  return by_lane(detail::beta, a, b);
}
template <Real T>
BUROPT_INLINE T betaln(T a, T b) noexcept {
  return by_lane(detail::betaln, a, b);
}

}  // namespace buropt
