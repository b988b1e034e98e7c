#include "math/exprel.h"

#include <cmath>

#include "math/double_word.h"
#include "math/exp.h"
#include "math/log.h"
#include "math/power.h"

namespace buropt::detail {
namespace {

// (e^x - 1) / x, finite as long as the quotient is.
double exprel_itself(double x) noexcept {
  if (x == 0) return 1;
  if (x == kInfinity<double>) return x;
  if (x > 700) return exp(700.0) / x * exp(x - 700);
  return expm1(x) / x;
}

}  // namespace

double exprel(double x, int n) noexcept {
  if (std::isnan(x) || n < 0) return kNaN<double>;
  if (n == 0) return exprel_itself(x);
  const double size = abs(x);
  if (std::isinf(size)) return x > 0 ? x : 0;
  if (size > 2 * n + 4) {
    // E_n = (e^x - n E_(n-1)) / x, from integration by parts.
    const double e = x > 700 ? exp(700.0) / x * exp(x - 700) : exp(x) / x;
    double value = exprel_itself(x);
    if (std::isinf(value)) return value;
    for (int k = 1; k <= n; ++k) value = e - k / x * value;
    return value;
  }
  // Series of positive terms: for x >= 0 of x^j / (j! (j + n + 1)), below it is e^x times one of
  // |x|^j / ((n + 1) ... (n + 1 + j)).
  double sum = 0, term = 1;
  if (x >= 0) {
    for (int j = 0; term > 1e-18 * sum; ++j) {
      sum += term / (j + n + 1);
      term *= x / (j + 1);
    }
    return sum;
  }
  term = exp(x) / (n + 1);
  for (int j = 1; term > 1e-18 * sum; ++j) {
    sum += term;
    term *= size / (n + 1 + j);
  }
  return sum;
}

double log1prel(double x, int n) noexcept {
  if (!(x > -1) || n < 0) return kNaN<double>;
  if (n == 0) return x == 0 ? 1 : log1p(x) / x;
  const double u = 1 / (1 + x);
  const double w = x * u;
  if (abs(w) <= 0.6) {
    // u^(n + 1) times the sum of w^k / (n + 1 + k).
    double sum = 0;
    for (int k = 80; k >= 0; --k) sum = 1.0 / (n + 1 + k) + w * sum;
    return powi(u, n + 1) * sum;
  }
  double value = log1p(x) / x, power = 1;
  for (int k = 1; k <= n; ++k) {
    power *= u;
    value = (value - power / k) / x;
  }
  return value;
}

double boxcox(double x, double power) noexcept {
  if (!(x >= 0) || std::isnan(power)) return kNaN<double>;
  if (x == 0) return power > 0 ? -1 / power : -kInfinity<double>;
  const double log_x = log(x);
  if (power == 0) return log_x;
  const double exponent = power * log_x;
  if (abs(exponent) < 0.5) return log_x * exprel_itself(exponent);
  return (pow(x, power) - 1) / power;
}

double inv_boxcox(double y, double power) noexcept {
  if (power == 0) return exp(y);
  // log(1 + power y) and its quotient by power, in two words.
  const auto [high, low] = product(power, y);
  if (high == kInfinity<double> && abs(y) < high)
    return exp((log(abs(power)) + log(abs(y))) / power);
  const DoubleWord<double> sum = difference(1.0, -high);
  if (!(sum.high > 0)) {
    if (sum.high == 0) return power > 0 ? 0 : kInfinity<double>;
    return kNaN<double>;
  }
  const auto [log, log_low] = log_in_two_words(sum.high);
  const double error = log_low + (sum.low + low) / sum.high;
  const double quotient = log / power;
  if (!(abs(quotient) < 1024)) return exp(quotient);
  const auto [back, back_error] = product(quotient, power);
  const double rest = (((log - back) - back_error) + error) / power;
  const DoubleWord<double> exponent = difference(quotient, -rest);
  return exp_of_difference(exponent.high, -exponent.low).high;
}

}  // namespace buropt::detail
