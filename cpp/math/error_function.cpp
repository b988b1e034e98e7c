#include "math/error_function.h"

#include <cmath>

#include "math/log.h"

namespace buropt::detail {
namespace {

constexpr double kSqrt2 = 0x1.6a09e667f3bcdp+0;
constexpr double kOneOverSqrtPi = 0x1.20dd750429b6dp-1;

double plain_erfcx(double x) noexcept {
  using C = ErrorFunctionConstants<double>;
  if (x < 0) {
    const auto [high, low] = product(x, x);
    const auto [e, e_error] = exp_of_difference(high, x > -28 ? -low : 0);
    return 2 * e + (2 * e_error - plain_erfcx(-x));
  }
  if (x <= 0.5) return exp(x * x) * (1 - small_erf(x));
  if (x <= C::kLargest) {
    const auto [high, low] = scaled_erfc(x);
    return high + low;
  }
  // The asymptotic series 1 - 1/(2 x^2) + 1 3/(2 x^2)^2 - ...
  const double z = -0.5 / (x * x);
  double sum = 1;
  for (int k = 13; k > 0; k -= 2) sum = 1 + z * k * sum;
  return kOneOverSqrtPi / x * sum;
}

// The scaled repeated integrals f_n at x >= 1/2 by the recurrence
// f_(n-1) = 2 x f_n + 2 (n + 1) f_(n+1) downwards, in which f_n outgrows all other solutions.
double erfcx_downwards(double x, int n) noexcept {
  // They go like exp(+-x sqrt(2 n)), so the start is forgotten when the difference is e^-42.
  const double root = 21 / x + sqrt(2.0 * (n + 1));
  const int start = 5 + static_cast<int>(root * root / 2);
  double above = 0, here = 1e-280, wanted = 0;
  for (int k = start; k > 0; --k) {
    if (k == n) wanted = here;
    const double below = 2 * x * here + 2 * (k + 1) * above;
    above = here;
    here = below;
    if (here > 1e200) {  // numbers far above n only set the start
      here *= 1e-300;
      above *= 1e-300;
      wanted *= 1e-300;
    }
  }
  return wanted / here * plain_erfcx(x);
}

// Their Taylor series at 0, where f_m(0) = 1 / (2^m gamma(m/2 + 1)).
double erfcx_series(double x, int n) noexcept {
  // f_m(0) of an even and an odd m, continued by f_(m+2)(0) = f_m(0) / (2 (m + 2)).
  double value[2] = {1, kOneOverSqrtPi};
  for (int m = 2; m <= n + 1; ++m) value[m % 2] /= 2 * m;
  double sum = 0, factor = 1;
  for (int k = 0; k < 60; ++k) {
    const int m = n + k;
    if (m >= 2 && k >= 2) value[m % 2] /= 2 * m;
    const double term = factor * value[m % 2];
    sum += term;
    if (std::abs(term) < 1e-18 * sum) break;
    factor *= -2 * x * (m + 1) / (k + 1);
  }
  return sum;
}

// A rational start for erfcinv(2 p) / -sqrt(2), p < 1/2, with 16 digits: algorithm AS 241, PPND16,
// of M. J. Wichura, Applied Statistics 37 (1988). `q` is 1/2 - p.
double quantile_start(double p, double q) noexcept {
  static constexpr double kA[] = {3.3871328727963666080e0,  1.3314166789178437745e+2,
                                  1.9715909503065514427e+3, 1.3731693765509461125e+4,
                                  4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                  3.3430575583588128105e+4, 2.5090809287301226727e+3};
  static constexpr double kB[] = {1.0,
                                  4.2313330701600911252e+1,
                                  6.8718700749205790830e+2,
                                  5.3941960214247511077e+3,
                                  2.1213794301586595867e+4,
                                  3.9307895800092710610e+4,
                                  2.8729085735721942674e+4,
                                  5.2264952788528545610e+3};
  static constexpr double kC[] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                  5.76949722146069140550e0,  3.64784832476320460504e0,
                                  1.27045825245236838258e0,  2.41780725177450611770e-1,
                                  2.27238449892691845833e-2, 7.74545014278341407640e-4};
  static constexpr double kD[] = {1.0,
                                  2.05319162663775882187e0,
                                  1.67638483018380384940e0,
                                  6.89767334985100004550e-1,
                                  1.48103976427480074590e-1,
                                  1.51986665636164571966e-2,
                                  5.47593808499534494600e-4,
                                  1.05075007164441684324e-9};
  static constexpr double kE[] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                  1.78482653991729133580e0,  2.96560571828504891230e-1,
                                  2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                  2.71155556874348757815e-5, 2.01033439929228813265e-7};
  static constexpr double kF[] = {1.0,
                                  5.99832206555887937690e-1,
                                  1.36929880922735805310e-1,
                                  1.48753612908506148525e-2,
                                  7.86869131145613259100e-4,
                                  1.84631831751005468180e-5,
                                  1.42151175831644588870e-7,
                                  2.04426310338993978564e-15};
  if (q <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * polynomial(r, kA) / polynomial(r, kB);
  }
  const double r = sqrt(-log(p));
  if (r <= 5) return polynomial(r - 1.6, kC) / polynomial(r - 1.6, kD);
  return polynomial(r - 5, kE) / polynomial(r - 5, kF);
}

// erfinv(x) for 0 <= x <= 1/2, by one Newton step.
double erfinv_middle(double x) noexcept {
  const double y = quantile_start(0.5 * (1 - x), 0.5 * x) / kSqrt2;
  return y + (x - erf(y)) * exp(y * y) * (0.5 / kOneOverSqrtPi);
}

// erfcinv(x) for 0 < x <= 1/2, by one Newton step in relative terms.
double erfcinv_tail(double x) noexcept {
  const double y = quantile_start(0.5 * x, 0.5 - 0.5 * x) / kSqrt2;
  if (x < 1e-290) return y;  // the residual would have too few digits
  return y + (erfc(y) / x - 1) * plain_erfcx(y) * (0.5 / kOneOverSqrtPi);
}

}  // namespace

double erfcx(double x, int n) noexcept {
  if (std::isnan(x) || n == 0) return plain_erfcx(x);
  if (std::isinf(x)) return x > 0 ? 0 : kInfinity<double>;
  if (x >= 0.5) return erfcx_downwards(x, n);
  if (x >= 0) return erfcx_series(x, n);
  double below = 2 * kOneOverSqrtPi, here = plain_erfcx(x);
  for (int k = 1; k <= n; ++k) {
    const double above = (below - 2 * x * here) / (2 * k);
    below = here;
    here = above;
  }
  return here;
}

double log_ndtr(double x) noexcept {
  if (x < -1) return log(0.5 * plain_erfcx(-x / kSqrt2)) - 0.5 * (x * x);
  return x < 0 ? log(ndtr(x)) : log1p(-ndtr(-x));
}

double erfinv(double x) noexcept {
  const double size = abs(x);
  if (size <= 0.5) return x == 0 ? x : copysign(erfinv_middle(size), x);
  if (!(size < 1)) return size == 1 ? copysign(kInfinity<double>, x) : kNaN<double>;
  return copysign(erfcinv_tail(1 - size), x);
}

double erfcinv(double x) noexcept {
  if (x > 0 && x <= 0.5) return erfcinv_tail(x);
  if (x > 0.5 && x < 1.5) return erfinv(1 - x);
  if (x >= 1.5 && x < 2) return -erfcinv_tail(2 - x);
  if (x == 0) return kInfinity<double>;
  return x == 2 ? -kInfinity<double> : kNaN<double>;
}

double ndtri(double x) noexcept {
  if (x > 0.25 && x < 0.75) return kSqrt2 * erfinv(2 * x - 1);
  return x < 0.5 ? -kSqrt2 * erfcinv(2 * x) : kSqrt2 * erfcinv(2 * (1 - x));
}

}  // namespace buropt::detail
