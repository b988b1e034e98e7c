// gamma and log gamma.
//
// Three ways: a polynomial for the logarithm around its zeros at 1 and 2; products of x + j in two
// words that lead there from the middle of the range; Stirling's series, its large terms in two
// words, for x >= 10.
#include "math/gamma.h"

#include <cmath>

#include "math/double_word.h"
#include "math/exp.h"
#include "math/log.h"
#include "math/polynomial.h"
#include "math/power.h"
#include "math/stirling.h"
#include "math/trig.h"

namespace buropt::detail {
namespace {

using Words = DoubleWord<double>;

// log gamma(1 + z) / z for -1/4 <= z <= 1/2: 2^-61.
constexpr double kAboutOne[] = {
    -0x1.2788cfc6fb619p-1, 0x1.a51a6625307d3p-1, -0x1.9a4d55beab2cep-2, 0x1.151322ac7d854p-2,
    -0x1.a8b9c17aa7996p-3, 0x1.5b40cb100e023p-3, -0x1.2703a1dc1fd43p-3, 0x1.010b36ad48b01p-3,
    -0x1.c80670d3280bdp-4, 0x1.9a01e53e4edcap-4, -0x1.748c261d34410p-4, 0x1.556a844444f23p-4,
    -0x1.3b1e435fd3c94p-4, 0x1.249ef2201f434p-4, -0x1.11181f2b1fb07p-4, 0x1.ff369fb41d110p-5,
    -0x1.dfd35079852b6p-5, 0x1.ca1b00eed9554p-5, -0x1.c488cec3a409ap-5, 0x1.b512b63b2cee9p-5,
    -0x1.5e1f97328bc6bp-5, 0x1.757866498463ap-6, -0x1.77ee931621aefp-8};
// log gamma(2 + z) / z for -1/2 <= z <= 1/2: 2^-62.
constexpr double kAboutTwo[] = {
    0x1.b0ee6072093cep-2,   0x1.4a34cc4a60fa6p-2,  -0x1.13e001a55760ap-4,  0x1.51322ac7d84f0p-6,
    -0x1.e404fc218dcc2p-8,  0x1.7add6eada7177p-9,  -0x1.38ac5c2d3d0d4p-10, 0x1.0b36af8e879e1p-11,
    -0x1.d3fd4b6ebd452p-13, 0x1.a127ac1bd3ebep-14, -0x1.78de996d85c3cp-15, 0x1.580ea6b121616p-16,
    -0x1.3cb3e135122f9p-17, 0x1.2580367acde8ap-18, -0x1.1274c1fa73856p-19, 0x1.01fb322b99f29p-20,
    -0x1.ce3c3f461ac1bp-22, 0x1.a6583f61992b9p-23, -0x1.1fc81e8c7cda2p-23, 0x1.290d38135ca85p-24};

constexpr double kPi = 0x1.921fb54442d18p+1;
constexpr double kStirlingFrom = 10;
constexpr double kProductsTo = 25;  // gamma of whole numbers up to here is exact
constexpr double kReflectFrom = -20;

// sin(pi x), with whole periods taken off exactly.
double sin_pi(double x) noexcept {
  const double whole = std::rint(x);
  const double y = sin(kPi * (x - whole));
  return std::fmod(whole, 2) == 0 ? y : -y;
}

bool is_pole(double x) noexcept { return x <= 0 && x == std::floor(x); }

// (x - 1) (x - 2) ... down to a factor in [1.5, 2.5), for x >= 2.5; `rest` is that factor minus 2.
Words falling_product(double x, double& rest) noexcept {
  Words result{1, 0};
  double factor = x;
  while (factor >= 2.5) {
    factor -= 1;  // exact
    result = result * Words{factor, 0};
  }
  rest = factor - 2;
  return result;
}

// x (x + 1) ... up to below 1.5, for x < 1.5; x plus the number of factors is 2 + `rest`.
Words rising_product(double x, double& rest) noexcept {
  Words result{1, 0};
  int count = 0;
  for (; x + count < 1.5; ++count) result = result * difference(x, -static_cast<double>(count));
  rest = x + (count - 2);
  return result;
}

Words normalized(Words a) noexcept { return ordered_sum(a.high, a.low); }

// gamma(2 + z) for -1/2 <= z <= 1/2.
Words gamma_about_two(double z) noexcept {
  const auto [value, error] = exp_of_difference(z * polynomial(z, kAboutTwo), 0.0);
  return {value, error};
}

// gamma(x) for x < -20 by reflection, 1 - x in two words; a scale keeps a subnormal result exact.
double reflected_gamma(double x) noexcept {
  const Words mirror = difference(1.0, x);
  if (mirror.high > 190) return copysign(0.0, sin_pi(x));
  const Words log = log_gamma_stirling(mirror.high, mirror.low);
  constexpr double kScale = 128 * 0x1.62e42fefa39efp-1, kScaleLow = 128 * 0x1.abc9e3b39803fp-56;
  const Words shifted = difference(kScale, log.high);
  const double low = log.low - (shifted.low + kScaleLow);
  const double size = exp_of_difference(shifted.high, low).high;
  return size * (kPi / sin_pi(x)) * 0x1p-128;
}

}  // namespace

double gamma(double x) noexcept {
  if (x >= kProductsTo) {
    if (x > 172) return kInfinity<double>;
    const Words log = log_gamma_stirling(x, 0);
    return exp_of_difference(log.high, -log.low).high;
  }
  if (x == 0) return 1 / x;
  if (std::isnan(x) || is_pole(x)) return kNaN<double>;
  if (x < kReflectFrom) return reflected_gamma(x);
  double rest;
  if (x >= 1.5) {
    const Words factors = falling_product(x, rest);
    const Words value = gamma_about_two(rest) * factors;
    return value.high + value.low;
  }
  if (abs(x) < 1e-100) return 1 / x;
  const Words factors = normalized(rising_product(x, rest));
  const Words value = gamma_about_two(rest);
  const double quotient = value.high / factors.high;
  const auto [back, error] = product(quotient, factors.high);
  const double missing = (value.high - back) - error + value.low - quotient * factors.low;
  return quotient + missing / factors.high;
}

double gammaln(double x) noexcept {
  if (x >= kStirlingFrom) {
    if (x > 1e300) return x * (log(x) - 1);
    const Words log = log_gamma_stirling(x, 0);
    return log.high + log.low;
  }
  if (x >= 2.5) {
    double rest;
    const Words factors = normalized(falling_product(x, rest));
    return log(factors.high) + (factors.low / factors.high + rest * polynomial(rest, kAboutTwo));
  }
  if (x >= 1.5) return (x - 2) * polynomial(x - 2, kAboutTwo);
  if (x == 1) return 0;  // and not -0
  if (x >= 0.75) return (x - 1) * polynomial(x - 1, kAboutOne);
  if (x > 0) {
    const double shifted =
        x <= 0.5 ? x * polynomial(x, kAboutOne) : (x - 1) * polynomial(x - 1, kAboutTwo);
    return shifted - log(x);
  }
  if (std::isnan(x) || std::isinf(x)) return x;
  if (is_pole(x)) return kInfinity<double>;
  if (x > -1e-100) return -log(-x);
  if (x > kReflectFrom) return log(abs(gamma(x)));
  return log(kPi / abs(sin_pi(x))) - gammaln(1 - x);
}

double beta(double a, double b) noexcept {
  const double sum = a + b;
  const auto moderate = [](double x) { return abs(x) < 170 && abs(x) > 1e-100; };
  const bool small = moderate(a) && moderate(b) && abs(sum) < 170;
  if (small && !is_pole(a) && !is_pole(b)) {
    if (is_pole(sum)) return copysign(0.0, gamma(a) * gamma(b));
    // In this order no product overflows; the rounding of a + b is put back by its derivative.
    const double lost = difference(a, -b).low;
    const double larger = a > b ? a : b, smaller = a > b ? b : a;
    const double ratio = gamma(larger) / gamma(sum);
    return gamma(smaller) * (ratio - ratio * (lost == 0 ? 0 : lost * polygamma(sum, 0)));
  }
  if (a > 0 && b > 0) return exp(betaln(a, b));
  if (std::isnan(sum)) return sum;
  if (is_pole(a) || is_pole(b)) return kInfinity<double>;
  const double sign = gamma(a) * gamma(b) * gamma(sum);
  return copysign(exp(betaln(a, b)), sign);
}

double betaln(double a, double b) noexcept {
  const double p = a < b ? a : b, q = a < b ? b : a;
  if (std::isnan(a) || std::isnan(b)) return kNaN<double>;
  if (is_pole(p) || is_pole(q)) return kInfinity<double>;
  if (p <= 0) return is_pole(a + b) ? -kInfinity<double> : gammaln(p) + gammaln(q) - gammaln(p + q);
  if (std::isinf(q)) return -kInfinity<double>;
  // The large terms of Stirling's series cancel, so only what is left of them is formed.
  if (p >= kStirlingFrom) {
    constexpr double kHalfLogTwoPi = 0x1.d67f1c864beb5p-1;
    const double tails = stirling_tail(p) + (stirling_tail(q) - stirling_tail(p + q));
    return ((p - 0.5) * log(p / (p + q)) + q * log1p(-p / (p + q))) +
           ((kHalfLogTwoPi + tails) - 0.5 * log(q));
  }
  if (q >= kStirlingFrom) {
    const double tails = stirling_tail(q) - stirling_tail(p + q);
    return (gammaln(p) - p * log(p + q)) + (((q - 0.5) * log1p(-p / (p + q)) + p) + tails);
  }
  if (p < 1e-100) return -log(p);
  return log(beta(p, q));
}

}  // namespace buropt::detail
