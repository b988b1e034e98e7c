// Stirling's series of log gamma, for x >= 10.
#pragma once

#include "math/double_word.h"
#include "math/power.h"

namespace buropt::detail {

// log gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2) = sum of B_2k / (2k (2k - 1) x^(2k - 1)).
inline double stirling_tail(double x) noexcept {
  static constexpr double kTerms[] = {1.0 / 12,   -1.0 / 360,      1.0 / 1260, -1.0 / 1680,
                                      1.0 / 1188, -691.0 / 360360, 1.0 / 156,  -3617.0 / 122400};
  const double inverse = 1 / x;
  return inverse * polynomial(inverse * inverse, kTerms);
}

// log gamma(x + x_low), |x_low| a rounding of x.
inline DoubleWord<double> log_gamma_stirling(double x, double x_low) noexcept {
  constexpr double kHalfLogTwoPi = 0x1.d67f1c864beb5p-1, kHalfLogTwoPiLow = -0x1.65b5a1b7ff5dfp-55;
  const DoubleWord<double> log = log_in_two_words(x);
  const auto [main, main_error] = product(x - 0.5, log.high);
  const DoubleWord<double> less_x = difference(main, x);
  const DoubleWord<double> plus = ordered_sum(less_x.high, kHalfLogTwoPi);
  const double low = fma(x - 0.5, log.low, main_error) + less_x.low + plus.low +
                     (kHalfLogTwoPiLow + x_low * (log.high - 0.5 / x));
  const DoubleWord<double> sum = ordered_sum(plus.high, stirling_tail(x));
  return ordered_sum(sum.high, sum.low + low);
}

}  // namespace buropt::detail
