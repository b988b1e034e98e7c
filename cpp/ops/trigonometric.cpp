// sin, cos, tan; arcsin, arccos, arctan, arctan2; hypot; cosm1.
#include "math/elementary.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace buropt {
namespace {

struct Sin {
  static constexpr std::string_view name = "sin", doc = "Sine of radians.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return sin(x);
  }
  template <class T>
  static T slope(T x, T) {
    return cos(x);
  }
};

struct Cos {
  static constexpr std::string_view name = "cos", doc = "Cosine of radians.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return cos(x);
  }
  template <class T>
  static T slope(T x, T) {
    return -sin(x);
  }
};

struct Tan {
  static constexpr std::string_view name = "tan", doc = "Tangent of radians.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::output;
  static constexpr Interval domain{-1.4, 1.4};
  template <class T>
  static T value(T x) {
    return tan(x);
  }
  template <class T>
  static T slope(T, T y) {
    return T(1) + y * y;
  }
};

struct Arcsin {
  static constexpr std::string_view name = "arcsin", doc = "Inverse sine, in radians.";
  static constexpr int arity = 1;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{-0.98, 0.98};
  template <class T>
  static T value(T x) {
    return arcsin(x);
  }
  template <class T>
  static T slope(T x, T) {
    return T(1) / sqrt((T(1) - x) * (T(1) + x));
  }
};

struct Arccos {
  static constexpr std::string_view name = "arccos", doc = "Inverse cosine, in radians.";
  static constexpr int arity = 1;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{-0.98, 0.98};
  template <class T>
  static T value(T x) {
    return arccos(x);
  }
  template <class T>
  static T slope(T x, T) {
    return T(-1) / sqrt((T(1) - x) * (T(1) + x));
  }
};

struct Arctan {
  static constexpr std::string_view name = "arctan", doc = "Inverse tangent, in radians.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return arctan(x);
  }
  template <class T>
  static T slope(T x, T) {
    return T(1) / (T(1) + x * x);
  }
};

// No square overflows; at (0, 0) there is no slope, and 0 is taken.
template <class T>
T over_squared_length(T part, T a, T b) {
  const T length = hypot(a, b);
  return select(length == T(0), T(0), part / length / length);
}

struct Arctan2 {
  static constexpr std::string_view name = "arctan2", doc = "Angle of the point (b, a) in radians.";
  static constexpr int arity = 2;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T a, T b) {
    return arctan2(a, b);
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    return over_squared_length(b, a, b);
  }
  template <class T>
  static T slope_b(T a, T b, T) {
    return over_squared_length(-a, a, b);
  }
};

struct Hypot {
  static constexpr std::string_view name = "hypot", doc = "sqrt(a^2 + b^2) without overflow.";
  static constexpr int arity = 2;
  static constexpr bool fused = true;
  template <class T>
  static T value(T a, T b) {
    return hypot(a, b);
  }
  template <class T>
  static T slope_a(T a, T, T y) {
    return select(y == T(0), T(0), a / y);
  }
  template <class T>
  static T slope_b(T, T b, T y) {
    return select(y == T(0), T(0), b / y);
  }
};

struct Cosm1 {
  static constexpr std::string_view name = "cosm1", doc = "cos(x) - 1, right near 0.";
  static constexpr int arity = 1;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return cosm1(x);
  }
  template <class T>
  static T slope(T x, T) {
    return -sin(x);
  }
};

}  // namespace

std::vector<Op> trigonometric_ops() {
  return elementwise_ops<Sin, Cos, Tan, Arcsin, Arccos, Arctan, Arctan2, Hypot, Cosm1>();
}

}  // namespace buropt
