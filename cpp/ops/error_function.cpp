// erf, erfc, erfcx, erfinv, erfcinv, and the normal distribution: ndtr, log_ndtr, ndtri.
#include "math/error_function.h"

#include <numbers>

#include "math/elementary.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/indexed.h"

namespace buropt {
namespace {

constexpr double kTwoOverSqrtPi = 2 * std::numbers::inv_sqrtpi;
constexpr double kSqrtHalf = std::numbers::sqrt2 / 2;
constexpr double kDensityAtZero = kSqrtHalf * std::numbers::inv_sqrtpi;  // 1 / sqrt(2 pi)

struct Erf {
  static constexpr std::string_view name = "erf", doc = "Error function.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return erf(x);
  }
  template <class T>
  static T slope(T x, T) {
    return number<T>(kTwoOverSqrtPi) * exp(-(x * x));
  }
};

struct Erfc {
  static constexpr std::string_view name = "erfc", doc = "1 - erf(x), right for large x.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return erfc(x);
  }
  template <class T>
  static T slope(T x, T) {
    return number<T>(-kTwoOverSqrtPi) * exp(-(x * x));
  }
};

// e^(x^2) times the n-th repeated integral of erfc. One family, because the slope of each is the
// next one: 2 x y - 2 / sqrt(pi) would lose all digits for large x.
struct Erfcx {
  static constexpr std::string_view name = "erfcx",
                                    doc = "exp(x^2) times the n-th repeated integral of erfc.";
  template <class T>
  static T value(T x, int n) {
    return erfcx(x, n);
  }
  static Symbol slope(Symbol x, int n) {
    return Symbol(-2.0 * (n + 1)) * apply_indexed("erfcx", x, n + 1);
  }
};

struct Erfinv {
  static constexpr std::string_view name = "erfinv", doc = "Inverse of erf.";
  static constexpr int arity = 1;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::output;
  static constexpr Interval domain{-0.98, 0.98};
  template <class T>
  static T value(T x) {
    return erfinv(x);
  }
  template <class T>
  static T slope(T, T y) {
    return number<T>(1 / kTwoOverSqrtPi) * exp(y * y);
  }
};

struct Erfcinv {
  static constexpr std::string_view name = "erfcinv", doc = "Inverse of erfc.";
  static constexpr int arity = 1;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::output;
  static constexpr Interval domain{0.02, 1.98};
  template <class T>
  static T value(T x) {
    return erfcinv(x);
  }
  template <class T>
  static T slope(T, T y) {
    return number<T>(-1 / kTwoOverSqrtPi) * exp(y * y);
  }
};

struct Ndtr {
  static constexpr std::string_view name = "ndtr", doc = "Normal distribution function.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return ndtr(x);
  }
  template <class T>
  static T slope(T x, T) {
    return number<T>(kDensityAtZero) * exp(T(-0.5) * (x * x));
  }
};

struct LogNdtr {
  static constexpr std::string_view name = "log_ndtr", doc = "Logarithm of ndtr(x).";
  static constexpr int arity = 1;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return log_ndtr(x);
  }
  // Density over ndtr. Below 0 that is -x plus a term that is small for large |x|, and written so,
  // because the second derivative is what is left when the -x has cancelled.
  template <class T>
  static T slope(T x, T) {
    const T z = T(-kSqrtHalf) * x;
    const T left =
        T(std::numbers::sqrt2) * apply_indexed("erfcx", z, 1) / apply_indexed("erfcx", z, 0) - x;
    const T right = T(kDensityAtZero) * exp(T(-0.5) * (x * x)) / ndtr(x);
    return select(x < T(0), left, right);
  }
};

struct Ndtri {
  static constexpr std::string_view
      name = "ndtri",
      doc = "Inverse of ndtr: the quantiles of the normal distribution.";
  static constexpr int arity = 1;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::output;
  static constexpr Interval domain{0.02, 0.98};
  template <class T>
  static T value(T x) {
    return ndtri(x);
  }
  template <class T>
  static T slope(T, T y) {
    return number<T>(1 / kDensityAtZero) * exp(T(0.5) * (y * y));
  }
};

}  // namespace

std::vector<Op> error_function_ops() {
  std::vector<Op> ops = elementwise_ops<Erf, Erfc, Erfinv, Erfcinv, Ndtr, LogNdtr, Ndtri>();
  ops.push_back(indexed_op<Erfcx>());
  return ops;
}

}  // namespace buropt
