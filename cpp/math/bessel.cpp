#include "math/bessel.h"

#include <cmath>

#include "math/exp.h"
#include "math/polynomial.h"
#include "math/power.h"
#include "math/trig.h"

namespace buropt::detail {
namespace {

constexpr double kPi = 0x1.921fb54442d18p+1;

// ---- I_0 and I_1. Up to 4 a series in z = x^2 / 4, beyond a polynomial in 1 / x.

// I_0(x) = 1 + z P(z), I_1(x) = x / 2 (1 + z P(z)): 2^-65.
constexpr double kSeries0[] = {0x1.0000000000000p+0,  0x1.0000000000000p-2,  0x1.c71c71c71c6f1p-6,
                               0x1.c71c71c71d060p-10, 0x1.2345678999c1ep-14, 0x1.02e85c0b5aa31p-19,
                               0x1.522a43683c80ap-25, 0x1.522a5744df7c5p-31, 0x1.0b2f6af3ba25dp-37,
                               0x1.56399c58dc514p-44, 0x1.65643762e7f3cp-51, 0x1.742626a4ca081p-58};
constexpr double kSeries1[] = {0x1.0000000000000p-1,  0x1.5555555555540p-4,  0x1.c71c71c71ce95p-8,
                               0x1.6c16c16c02635p-12, 0x1.845c8a10e1db0p-17, 0x1.27e4fafb13da3p-22,
                               0x1.522a57ae2567bp-28, 0x1.2c95490f940f7p-34, 0x1.abca1bdc53e7dp-41,
                               0x1.eb448edacd141p-48, 0x1.17a31134cd1dep-54};
// sqrt(x) e^-x I_n(x) for 4 <= x <= 8 in 1 / x - 0.1875, for 8 <= x <= 25 in 1 / x - 0.0825: 2^-58.
constexpr double kMiddle0[] = {
    0x1.a36701c1e0ad8p-2,   0x1.0e9b1d2f9ea5cp-4,  0x1.212b6d15652e3p-4,   0x1.0e5dc4d609ae8p-3,
    -0x1.cbb7da858ee74p-3,  -0x1.78206376cfcb0p+1, 0x1.48c5a2aa89f31p+1,   0x1.ccb9fd053cd74p+5,
    -0x1.6e33b55bc0b16p+7,  -0x1.5e89e22a02814p+9, 0x1.b0af9c864be83p+12,  -0x1.d448802557b8ep+13,
    -0x1.5b951cbd8b15fp+16, 0x1.a170a716ce047p+19, -0x1.5873d5e302342p+21, -0x1.3ff113088b137p+22,
    0x1.8c87b9aaee79fp+26,  -0x1.67c2e2e609d59p+28};
constexpr double kMiddle1[] = {
    0x1.79b47c9608785p-2,   -0x1.65b054d6fb198p-3,  -0x1.a1c1aa41425e3p-4,  -0x1.63f4f0ae8c007p-3,
    0x1.808810e745088p-3,   0x1.a85165528ccf0p+1,   -0x1.7667fc54abe64p+0,  -0x1.00badcfae5fa7p+6,
    0x1.5a8ae8c19efdap+7,   0x1.aaa2001a9610ep+9,   -0x1.c47355ecd578fp+12, 0x1.98f569fe14c7ep+13,
    0x1.98952a0db9284p+16,  -0x1.b3ce601b35f93p+19, 0x1.43886c32d627ap+21,  0x1.b34d5354b66abp+22,
    -0x1.9baff0d3c4368p+26, 0x1.5770a2c95c850p+28};
constexpr double kLarge0[] = {
    0x1.9cf1d1ac3bf97p-2,  0x1.c4609d129190fp-5,   0x1.3640a22760457p-5,   0x1.c26c1d069c24cp-5,
    0x1.217f55ca95003p-3,  0x1.3c6a20ec9278dp-1,   0x1.e19c06cba5696p+1,   0x1.cbb878460030ap+3,
    -0x1.843a85dbfe80bp+7, -0x1.db77d58148360p+11, -0x1.71ca8370db76dp+12, 0x1.a47617d22733cp+18,
    0x1.a8c7ddd3c2d7fp+20, -0x1.92cc307adf7cep+25, -0x1.42e3ccc9ab729p+27, 0x1.99b9a7cf15249p+32,
    0x1.67e901049918ap+32, -0x1.5853ae9462abcp+39, 0x1.487dbeacfb3dfp+38,  0x1.3f1b5bf1edcfcp+45};
constexpr double kLarge1[] = {
    0x1.8b8698a0b46eap-2,   -0x1.443b56d826999p-3, -0x1.ecb1212f52e46p-5,  -0x1.2b2315ccdd2e3p-4,
    -0x1.5eb440a91be9fp-3,  -0x1.6a08fde3b273cp-1, -0x1.0cdda97918072p+2,  -0x1.0b4ae174523f4p+4,
    0x1.86c6ba90dac59p+7,   0x1.fa89aeaaeecdep+11, 0x1.f1dd4f627f2f0p+12,  -0x1.b307f797b758fp+18,
    -0x1.ec29b95ed4061p+20, 0x1.9ceb59e9fda7fp+25, 0x1.7db1f35faef25p+27,  -0x1.a54d1f2f7723bp+32,
    -0x1.083ac5cea09a5p+33, 0x1.642f37683e990p+39, -0x1.78838ab60a8b2p+37, -0x1.4bb63c51138e5p+45};

constexpr double kSeriesTo = 4;

// I_0(x) or I_1(x) for 0 <= x < 4.
double i_series(double x, int n) noexcept {
  const double half = 0.5 * x;
  const double z = half * half;
  return n == 0 ? 1 + z * polynomial(z, kSeries0) : half + half * z * polynomial(z, kSeries1);
}

// sqrt(2 pi x) e^-x I_n(x) for large x: 1 - (m - 1)/(8x) + (m - 1)(m - 9)/(2! (8x)^2) - ..., m =
// 4n^2.
double i_asymptotic(double x, int n) noexcept {
  const double m = 4.0 * n * n, eighth = 1 / (8 * x);
  double sum = 0, term = 1;
  for (int k = 1; k < 60; ++k) {
    const double next = -term * (m - (2 * k - 1) * (2 * k - 1)) / k * eighth;
    if (abs(next) < 1e-18) break;
    sum += next;
    term = next;
  }
  return 1 + sum;
}

// e^-x I_0(x) or e^-x I_1(x) for x >= 4.
double i_scaled(double x, int n) noexcept {
  const double inverse = 1 / x, root = sqrt(x);
  if (x < 8) {
    const double t = inverse - 0.1875;
    return (n == 0 ? polynomial(t, kMiddle0) : polynomial(t, kMiddle1)) / root;
  }
  if (x < 25) {
    const double t = inverse - 0.0825;
    return (n == 0 ? polynomial(t, kLarge0) : polynomial(t, kLarge1)) / root;
  }
  constexpr double kOneOverRootTwoPi = 0x1.9884533d43651p-2;
  return i_asymptotic(x, n) * kOneOverRootTwoPi / root;
}

// e^-x I_n(x) for n >= 2, x >= 0.
double i_scaled_higher(double x, int n) noexcept {
  if (x > 100 + n * n) return i_asymptotic(x, n) / sqrt(2 * kPi * x);
  if (x * x < 4 * (n + 1)) {
    const double half = 0.5 * x;
    const double z = half * half;
    double sum = 1, leading = exp(-x);
    for (int k = 24; k > 0; --k) sum = 1 + sum * z / (k * (k + n));
    for (int k = 1; k <= n; ++k) leading *= half / k;
    return leading * sum;
  }
  // I_(k-1) = I_(k+1) + (2k / x) I_k downwards, in which I_n outgrows all other solutions.
  const int start = n + 10 + static_cast<int>(sqrt(100 * (x + n)));
  double above = 0, here = 1e-280, wanted = 0;
  for (int k = start; k > 0; --k) {
    if (k == n) wanted = here;
    const double below = above + 2 * k / x * here;
    above = here;
    here = below;
    if (here > 1e200) {
      here *= 1e-300;
      above *= 1e-300;
      wanted *= 1e-300;
    }
  }
  const double i0 = x < kSeriesTo ? i_series(x, 0) * exp(-x) : i_scaled(x, 0);
  return wanted / here * i0;
}

double odd_sign(double x, int n, double y) noexcept { return n % 2 != 0 ? copysign(y, x) : y; }

// x^n / (1 3 5 ... (2n + 1)) times a series in x^2 / 2, for small x.
double spherical_series(double x, int n) noexcept {
  const double z = -0.5 * x * x;
  double sum = 1, leading = 1;
  for (int k = 30; k > 0; --k) sum = 1 + sum * z / (k * (2 * n + 2 * k + 1));
  for (int k = 1; k <= n; ++k) leading *= x / (2 * k + 1);
  return leading * sum;
}

}  // namespace

double ive(double x, int n) noexcept {
  if (std::isnan(x) || n < 0) return kNaN<double>;
  const double size = abs(x);
  if (std::isinf(size)) return odd_sign(x, n, 0.0);
  if (n > 1) return odd_sign(x, n, i_scaled_higher(size, n));
  return odd_sign(x, n, size < kSeriesTo ? i_series(size, n) * exp(-size) : i_scaled(size, n));
}

double iv(double x, int n) noexcept {
  if (std::isnan(x) || n < 0) return kNaN<double>;
  const double size = abs(x);
  if (std::isinf(size)) return odd_sign(x, n, size);
  if (n <= 1 && size < kSeriesTo) return odd_sign(x, n, i_series(size, n));
  // Two factors: e^x alone overflows first.
  const double scaled = n > 1 ? i_scaled_higher(size, n) : i_scaled(size, n);
  const double half = size > 700 ? exp(size - 700) : 1;
  return odd_sign(x, n, scaled * exp(size > 700 ? 700.0 : size) * half);
}

double spherical_jn(double x, int n) noexcept {
  if (std::isnan(x) || n < 0) return kNaN<double>;
  const double size = abs(x);
  if (std::isinf(size)) return 0;
  const double odd = n % 2 != 0 && x < 0 ? -1 : 1;
  if (size < 1 || size < 0.75 * n) return odd * spherical_series(size, n);
  // j_(k+1) = (2k + 1) / x j_k - j_(k-1) upwards, good as long as k does not exceed x by much.
  double below = cos(size) / size, here = sin(size) / size;
  for (int k = 0; k < n; ++k) {
    const double above = (2 * k + 1) / size * here - below;
    below = here;
    here = above;
  }
  return odd * here;
}

double sinc(double x) noexcept {
  if (x == 0) return 1;
  const double whole = std::rint(x);
  if (x == whole) return std::isinf(x) ? kNaN<double> : 0;  // as NumPy
  const double y = sin(kPi * (x - whole)) / (kPi * x);
  return std::fmod(whole, 2) == 0 ? y : -y;
}

}  // namespace buropt::detail
