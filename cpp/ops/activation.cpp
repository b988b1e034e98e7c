// relu, silu, gelu, gelu_tanh: activations of networks that NumPy has no name for.
#include "math/elementary.h"
#include "math/error_function.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace buropt {
namespace {

/// x within bounds beyond which one of the logistic functions of x and -x is 0 and the other 1: its
/// product with 0 is then 0, and not NaN at infinity.
template <class T>
T at_least_minus_1000(T x) {
  return select(x < T(-1000), T(-1000), x);
}
template <class T>
T within_1000(T x) {
  return select(x > T(1000), T(1000), at_least_minus_1000(x));
}

struct Relu {
  static constexpr std::string_view name = "relu", doc = "max(x, 0); its slope at 0 is 0.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::output;
  template <class T>
  static T value(T x) {
    return maximum(x, T(0));
  }
  template <class T>
  static T slope(T, T y) {
    return select(y > T(0), T(1), select(y == T(0), T(0), y));
  }
};

struct Silu {
  static constexpr std::string_view name = "silu", doc = "x / (1 + exp(-x)).";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return at_least_minus_1000(x) * expit(x);
  }
  template <class T>
  static T slope(T x, T) {
    return expit(x) * (T(1) + within_1000(x) * expit(-x));
  }
};

struct Gelu {
  static constexpr std::string_view name = "gelu",
                                    doc = "x times the normal distribution function of x.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  static constexpr double kDensityAtZero = 0.3989422804014327;  // 1 / sqrt(2 pi)
  template <class T>
  static T value(T x) {
    return at_least_minus_1000(x) * ndtr(x);
  }
  template <class T>
  static T slope(T x, T) {
    const T bounded = within_1000(x);
    const T density = number<T>(kDensityAtZero) * exp(T(-0.5) * (bounded * bounded));
    return ndtr(x) + bounded * density;
  }
};

// (1 + tanh(u)) / 2 is the logistic function of 2 u, which keeps its digits for u << 0.
struct GeluTanh {
  static constexpr std::string_view name = "gelu_tanh",
                                    doc = "x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))) / 2.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  static constexpr double kLinear = 1.5957691216057308;  // 2 sqrt(2 / pi)
  static constexpr double kCubic = kLinear * 0.044715;

  template <class T>
  static T argument(T x) {
    return x * (number<T>(kLinear) + number<T>(kCubic) * (x * x));
  }
  template <class T>
  static T value(T x) {
    const T bounded = at_least_minus_1000(x);
    return bounded * expit(argument(bounded));
  }
  template <class T>
  static T slope(T x, T) {
    const T bounded = within_1000(x);
    const T u = argument(bounded);
    const T growth = number<T>(kLinear) + number<T>(3 * kCubic) * (bounded * bounded);
    return expit(u) * (T(1) + bounded * growth * expit(-u));
  }
};

}  // namespace

std::vector<Op> activation_ops() { return elementwise_ops<Relu, Silu, Gelu, GeluTanh>(); }

}  // namespace buropt
