// floor, ceil, trunc, rint; remainder, fmod and floor_divide; copysign and heaviside.
//
// Where a function jumps it has the derivative of the piece that the point belongs to.
#include "math/elementary.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace buropt {
namespace {

struct Floor {
  static constexpr std::string_view name = "floor", doc = "The largest whole number <= x.";
  static constexpr int arity = 1;
  static constexpr bool piecewise_constant = true;
  template <class T>
  static T value(T x) {
    return floor(x);
  }
};

struct Ceil {
  static constexpr std::string_view name = "ceil", doc = "The smallest whole number >= x.";
  static constexpr int arity = 1;
  static constexpr bool piecewise_constant = true;
  template <class T>
  static T value(T x) {
    return ceil(x);
  }
};

struct Trunc {
  static constexpr std::string_view name = "trunc", doc = "x without its fraction.";
  static constexpr int arity = 1;
  static constexpr bool piecewise_constant = true;
  template <class T>
  static T value(T x) {
    return trunc(x);
  }
};

struct Rint {
  static constexpr std::string_view name = "rint",
                                    doc = "The nearest whole number, of two the even one.";
  static constexpr int arity = 1;
  static constexpr bool piecewise_constant = true;
  template <class T>
  static T value(T x) {
    return rint(x);
  }
};

struct FloorDivide {
  static constexpr std::string_view name = "floor_divide", doc = "floor(a / b), not rounded twice.";
  static constexpr int arity = 2;
  static constexpr bool piecewise_constant = true;
  template <class T>
  static T value(T a, T b) {
    return floor_divide(a, b);
  }
};

// The quotient is taken from the value, so that it is the whole number that belongs to it.
template <class T>
T minus_quotient(T a, T b, T y) {
  return rint((y - a) / b);
}

struct Remainder {
  static constexpr std::string_view name = "remainder",
                                    doc = "a - b floor(a / b), with the sign of b.";
  static constexpr int arity = 2;
  template <class T>
  static T value(T a, T b) {
    return remainder(a, b);
  }
  template <class T>
  static T slope_a(T, T, T) {
    return T(1);
  }
  template <class T>
  static T slope_b(T a, T b, T y) {
    return minus_quotient(a, b, y);
  }
};

struct Fmod {
  static constexpr std::string_view name = "fmod", doc = "a - b trunc(a / b), with the sign of a.";
  static constexpr int arity = 2;
  template <class T>
  static T value(T a, T b) {
    return fmod(a, b);
  }
  template <class T>
  static T slope_a(T, T, T) {
    return T(1);
  }
  template <class T>
  static T slope_b(T a, T b, T y) {
    return minus_quotient(a, b, y);
  }
};

struct Copysign {
  static constexpr std::string_view name = "copysign", doc = "|a| with the sign of b.";
  static constexpr int arity = 2;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T a, T b) {
    return copysign(a, b);
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    return sign(a) * copysign(T(1), b);
  }
};

struct Heaviside {
  static constexpr std::string_view name = "heaviside", doc = "0 for a < 0, b at 0, 1 for a > 0.";
  static constexpr int arity = 2;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T a, T b) {
    return select(a == T(0), b, select(a > T(0), T(1), select(a < T(0), T(0), a)));
  }
  template <class T>
  static T slope_b(T a, T, T) {
    return select(a == T(0), T(1), T(0));
  }
};

}  // namespace

std::vector<Op> rounding_ops() {
  return elementwise_ops<Floor, Ceil, Trunc, Rint, FloorDivide, Remainder, Fmod, Copysign,
                         Heaviside>();
}

}  // namespace buropt
