// digamma and its derivatives.
//
// Large x have an asymptotic series with Bernoulli numbers; smaller ones get there, or to a
// polynomial around digamma's zero, by the recurrence psi_n(x + 1) = psi_n(x) + (-1)^n n! /
// x^(n+1). Negative ones are reflected.
#include <array>
#include <cmath>

#include "math/double_word.h"
#include "math/gamma.h"
#include "math/log.h"
#include "math/polynomial.h"
#include "math/power.h"
#include "math/trig.h"

namespace buropt::detail {
namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;

// cot(pi x); the distance to the nearest pole or zero is exact.
double cot_pi(double x) noexcept {
  const double fraction = x - std::rint(x);
  if (abs(fraction) <= 0.25) return 1 / tan(kPi * fraction);
  return copysign(tan(kPi * (0.5 - abs(fraction))), fraction);
}

// digamma(x) for x >= 10.
double digamma_series(double x) noexcept {
  // B_2k / 2k.
  static constexpr double kTerms[] = {1.0 / 12,  -1.0 / 120,     1.0 / 252, -1.0 / 240,
                                      1.0 / 132, -691.0 / 32760, 1.0 / 12,  -3617.0 / 8160};
  const double inverse = 1 / x;
  const double z = inverse * inverse;
  return log(x) - (0.5 * inverse + z * polynomial(z, kTerms));
}

// digamma(x) for 1 <= x <= 2: the distance to the zero times a polynomial in x - 1.5, 2^-61.
double digamma_about_zero(double x) noexcept {
  constexpr double kZero = 0x1.762d86356be3fp+0, kZeroLow = 0x1.b86a722197829p-54;
  static constexpr double kSlope[] = {
      0x1.e6f0cbb873616p-1,  -0x1.b1cb63005ee96p-2,  0x1.eca189b8e6f7bp-3,  -0x1.2feeeb98a7e2ep-3,
      0x1.8512e59037ed0p-4,  -0x1.fb44202999924p-5,  0x1.4de9aa18023efp-5,  -0x1.b9f8b14fb37d1p-6,
      0x1.2564715661045p-6,  -0x1.863559269aa43p-7,  0x1.03c0b2b03c827p-7,  -0x1.5a0806b3e02e4p-8,
      0x1.cd1f27e48eb0dp-9,  -0x1.3350d74daed31p-9,  0x1.99e19ccb78a2cp-10, -0x1.1140b333b9ee5p-10,
      0x1.69bb27fb05868p-11, -0x1.e1c404e615976p-12, 0x1.56c22c305ea08p-12, -0x1.cbf0d6cb9bccep-13,
      0x1.803dec94c1f9cp-14, -0x1.ed86d5e4c0c01p-15, 0x1.00b0db3f5c405p-13, -0x1.5cca9a45ad731p-14};
  return ((x - kZero) - kZeroLow) * polynomial(x - 1.5, kSlope);
}

double digamma(double x) noexcept {
  if (x >= 10) return digamma_series(x);
  if (x >= 1) {
    double sum = 0;
    while (x > 2) {
      x -= 1;  // exact
      sum += 1 / x;
    }
    return digamma_about_zero(x) + sum;
  }
  if (x > 0) return digamma_about_zero(1 + x) - 1 / x;
  if (x == 0) return -1 / x;
  if (!(x - std::rint(x) != 0)) return kNaN<double>;  // a pole, -inf or a NaN
  return digamma(1 - x) - kPi * cot_pi(x);
}

double factorial(int n) noexcept {
  double result = 1;
  for (int k = 2; k <= n; ++k) result *= k;
  return result;
}

// |psi_n(x)| for n >= 1 and x > 0.
double polygamma_size(double x, int n) noexcept {
  // B_2k.
  static constexpr double kBernoulli[] = {
      1.0 / 6, -1.0 / 30,     1.0 / 42,      -1.0 / 30,       5.0 / 66,       -691.0 / 2730,
      7.0 / 6, -3617.0 / 510, 43867.0 / 798, -174611.0 / 330, 854513.0 / 138, -236364091.0 / 2730};
  const double start = 10 + n;
  const int steps = x < start ? static_cast<int>(std::ceil(start - x)) : 0;
  const double y = x + steps;
  // n! times sum of (2k + n - 1)! / ((2k)! n!) B_2k / y^(2k + n), and the two terms before.
  double sum = 0, factor = (n + 1) / (2 * y * y);
  double terms[12];
  for (int k = 0; k < 12; ++k) {
    terms[k] = factor * kBernoulli[k];
    factor *= (2.0 * k + n + 2) / ((2 * k + 3) * y) * ((2 * k + n + 3) / ((2 * k + 4) * y));
  }
  for (int k = 11; k >= 0; --k) sum += terms[k];
  sum = powi(y, -n) * (sum + (1.0 / n + 0.5 / y));
  for (int k = steps - 1; k >= 0; --k) sum += powi(x + k, -n - 1);
  return factorial(n) * sum;
}

// The n-th derivative of pi cot(pi x), by its polynomial in the cotangent c: c' = -pi (1 + c^2).
double cotangent_derivative(double x, int n) noexcept {
  constexpr int kMost = 64;
  if (n > kMost - 2) return kNaN<double>;
  const double c = cot_pi(x);
  std::array<double, kMost + 1> p{};
  p[1] = kPi;
  for (int order = 0; order < n; ++order) {
    std::array<double, kMost + 1> next{};
    for (int k = 1; k <= order + 1; ++k) {
      const auto i = static_cast<std::size_t>(k);
      next[i - 1] -= kPi * k * p[i];
      next[i + 1] -= kPi * k * p[i];
    }
    p = next;
  }
  double value = 0;
  for (int k = n + 1; k >= 0; --k) value = value * c + p[static_cast<std::size_t>(k)];
  return value;
}

}  // namespace

double polygamma(double x, int n) noexcept {
  if (n <= 0) return n == 0 ? digamma(x) : kNaN<double>;
  if (std::isnan(x)) return x;
  const bool odd = n % 2 != 0;
  if (x > 0) return odd ? polygamma_size(x, n) : -polygamma_size(x, n);
  if (x == std::floor(x)) return odd ? kInfinity<double> : (x == 0 ? -1 / x : kNaN<double>);
  // psi_n(x) = (-1)^n psi_n(1 - x) minus the derivative of pi cot(pi x).
  return -cotangent_derivative(x, n) - polygamma_size(1 - x, n);
}

}  // namespace buropt::detail
