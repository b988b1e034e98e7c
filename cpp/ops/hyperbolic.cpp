// sinh, cosh, tanh, arcsinh, arccosh, arctanh.
#include "math/elementary.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace buropt {
namespace {

struct Sinh {
  static constexpr std::string_view name = "sinh", doc = "Hyperbolic sine.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return sinh(x);
  }
  template <class T>
  static T slope(T x, T) {
    return cosh(x);
  }
};

struct Cosh {
  static constexpr std::string_view name = "cosh", doc = "Hyperbolic cosine.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return cosh(x);
  }
  template <class T>
  static T slope(T x, T) {
    return sinh(x);
  }
};

struct Tanh {
  static constexpr std::string_view name = "tanh", doc = "Hyperbolic tangent.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return tanh(x);
  }
  // sech^2 from exp(-2|x|); 1 - y * y would lose its digits from |x| = 3 on.
  template <class T>
  static T slope(T x, T) {
    const T e = exp(T(-2) * abs(x));
    const T s = T(1) + e;
    return T(4) * e / (s * s);
  }
};

struct Arcsinh {
  static constexpr std::string_view name = "arcsinh", doc = "Inverse hyperbolic sine.";
  static constexpr int arity = 1;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return arcsinh(x);
  }
  template <class T>
  static T slope(T x, T) {
    return T(1) / hypot(x, T(1));
  }
};

struct Arccosh {
  static constexpr std::string_view name = "arccosh", doc = "Inverse hyperbolic cosine.";
  static constexpr int arity = 1;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{1.01, 5};
  template <class T>
  static T value(T x) {
    return arccosh(x);
  }
  // Two roots: their product would overflow for large x, and be real for x < -1.
  template <class T>
  static T slope(T x, T) {
    return T(1) / (sqrt(x - T(1)) * sqrt(x + T(1)));
  }
};

struct Arctanh {
  static constexpr std::string_view name = "arctanh", doc = "Inverse hyperbolic tangent.";
  static constexpr int arity = 1;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{-0.98, 0.98};
  template <class T>
  static T value(T x) {
    return arctanh(x);
  }
  template <class T>
  static T slope(T x, T) {
    return T(1) / ((T(1) - x) * (T(1) + x));
  }
};

}  // namespace

std::vector<Op> hyperbolic_ops() {
  return elementwise_ops<Sinh, Cosh, Tanh, Arcsinh, Arccosh, Arctanh>();
}

}  // namespace buropt
