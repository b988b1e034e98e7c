// gamma, gammaln, polygamma (whose first member is digamma), beta, betaln.
#include "math/gamma.h"

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/indexed.h"

namespace buropt {
namespace {

Symbol digamma(Symbol x) { return apply_indexed("polygamma", x, 0); }

struct Gamma {
  static constexpr std::string_view name = "gamma", doc = "Gamma function.";
  static constexpr int arity = 1;
  static constexpr Interval domain{0.2, 5};
  template <class T>
  static T value(T x) {
    return gamma(x);
  }
  template <class T>
  static T slope(T x, T y) {
    return y * digamma(x);
  }
};

struct Gammaln {
  static constexpr std::string_view name = "gammaln", doc = "Logarithm of |gamma(x)|.";
  static constexpr int arity = 1;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{0.2, 9};
  template <class T>
  static T value(T x) {
    return gammaln(x);
  }
  template <class T>
  static T slope(T x, T) {
    return digamma(x);
  }
};

struct Polygamma {
  static constexpr std::string_view name = "polygamma", doc = "The n-th derivative of digamma.";
  static constexpr Interval domain{0.2, 9};
  template <class T>
  static T value(T x, int n) {
    return polygamma(x, n);
  }
  static Symbol slope(Symbol x, int n) { return apply_indexed("polygamma", x, n + 1); }
};

struct Beta {
  static constexpr std::string_view name = "beta", doc = "gamma(a) gamma(b) / gamma(a + b).";
  static constexpr int arity = 2;
  static constexpr Interval domain{0.2, 5};
  template <class T>
  static T value(T a, T b) {
    return beta(a, b);
  }
  template <class T>
  static T slope_a(T a, T b, T y) {
    return y * (digamma(a) - digamma(a + b));
  }
  template <class T>
  static T slope_b(T a, T b, T y) {
    return y * (digamma(b) - digamma(a + b));
  }
};

struct Betaln {
  static constexpr std::string_view name = "betaln", doc = "Logarithm of |beta(a, b)|.";
  static constexpr int arity = 2;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{0.2, 5};
  template <class T>
  static T value(T a, T b) {
    return betaln(a, b);
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    return digamma(a) - digamma(a + b);
  }
  template <class T>
  static T slope_b(T a, T b, T) {
    return digamma(b) - digamma(a + b);
  }
};

}  // namespace

std::vector<Op> gamma_ops() {
  std::vector<Op> ops = elementwise_ops<Gamma, Gammaln, Beta, Betaln>();
  ops.push_back(indexed_op<Polygamma>());
  return ops;
}

}  // namespace buropt
