// exprel and log1prel, and the Box-Cox transform that they are the derivatives of.
#include "math/exprel.h"

#include "math/elementary.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/indexed.h"

namespace buropt {
namespace {

struct Exprel {
  static constexpr std::string_view name = "exprel",
                                    doc = "The n-th derivative of (exp(x) - 1) / x.";
  template <class T>
  static T value(T x, int n) {
    return exprel(x, n);
  }
  static Symbol slope(Symbol x, int n) { return apply_indexed("exprel", x, n + 1); }
};

struct Log1prel {
  static constexpr std::string_view
      name = "log1prel",
      doc = "Integral of t^n / (1 + x t)^(n + 1) over [0, 1]; log1p(x) / x for n = 0.";
  static constexpr Interval domain{-0.9, 9};
  template <class T>
  static T value(T x, int n) {
    return log1prel(x, n);
  }
  static Symbol slope(Symbol x, int n) {
    return Symbol(-1.0 - n) * apply_indexed("log1prel", x, n + 1);
  }
};

struct Boxcox {
  static constexpr std::string_view name = "boxcox", doc = "(a^b - 1) / b; log(a) for b = 0.";
  static constexpr int arity = 2;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::input;
  static constexpr std::array<Interval, 2> domain{{{0.1, 5}, {-2, 2}}};
  template <class T>
  static T value(T a, T b) {
    return boxcox(a, b);
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    return pow(a, b - T(1));
  }
  // The value is the integral of a^(t b) log(a) over t in [0, 1]; at a = 0 it is -1 / b.
  template <class T>
  static T slope_b(T a, T b, T) {
    const T log_a = log(a);
    const T at_zero = select(b > T(0), T(1) / (b * b), T(0));
    return select(a == T(0), at_zero, log_a * log_a * apply_indexed("exprel", b * log_a, 1));
  }
};

struct InvBoxcox {
  static constexpr std::string_view name = "inv_boxcox",
                                    doc = "(1 + a b)^(1 / b); exp(a) for b = 0.";
  static constexpr int arity = 2;
  static constexpr std::array<Interval, 2> domain{{{-0.9, 2}, {-0.45, 1}}};
  template <class T>
  static T value(T a, T b) {
    return inv_boxcox(a, b);
  }
  template <class T>
  static T slope_a(T a, T b, T y) {
    return y / (T(1) + a * b);
  }
  // The value is exp(a log1prel(a b)).
  template <class T>
  static T slope_b(T a, T b, T y) {
    return -y * a * a * apply_indexed("log1prel", a * b, 1);
  }
};

}  // namespace

std::vector<Op> box_cox_ops() {
  std::vector<Op> ops = elementwise_ops<Boxcox, InvBoxcox>();
  ops.push_back(indexed_op<Exprel>());
  ops.push_back(indexed_op<Log1prel>());
  return ops;
}

}  // namespace buropt
