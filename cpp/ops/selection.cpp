// where, maximum, minimum, fmax, fmin, absolute, sign: piecewise functions and their conventions at
// the seams.
#include "math/elementary.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace buropt {
namespace {

struct Where {
  static constexpr std::string_view name = "where", doc = "a where the condition is not 0, else b.";
  static constexpr int arity = 3;
  template <class T>
  static T value(T condition, T a, T b) {
    return select(condition != T(0), a, b);
  }

  // The branch that is not taken gets exactly 0.
  static void reverse(Emitter& e, const NodeView& node, NodeId cotangent,
                      std::span<NodeId> cotangents) {
    const NodeId zero = e.constant(0, e.type(cotangent).dtype);
    cotangents[1] = e.emit("where", {node.inputs[0], cotangent, zero});
    cotangents[2] = e.emit("where", {node.inputs[0], zero, cotangent});
  }
};

// Ties share the cotangent equally. NaN in either operand propagates: to the value as in NumPy, and
// to the slopes, so that this NaN does not come with a finite derivative.
template <class T>
T unordered_or_tie(T a, T b) {
  return select(a == b, T(0.5), a + b);
}

struct Maximum {
  static constexpr std::string_view name = "maximum", doc = "Larger of two arrays.";
  static constexpr int arity = 2;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T a, T b) {
    return maximum(a, b);
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    return select(a > b, T(1), select(a < b, T(0), unordered_or_tie(a, b)));
  }
  template <class T>
  static T slope_b(T a, T b, T) {
    return slope_a(b, a, a);
  }
};

struct Minimum {
  static constexpr std::string_view name = "minimum", doc = "Smaller of two arrays.";
  static constexpr int arity = 2;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T a, T b) {
    return minimum(a, b);
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    return select(a < b, T(1), select(a > b, T(0), unordered_or_tie(a, b)));
  }
  template <class T>
  static T slope_b(T a, T b, T) {
    return slope_a(b, a, a);
  }
};

// A NaN is passed over: the other operand is the value and gets all. Two have a NaN as slope.
struct Fmax {
  static constexpr std::string_view name = "fmax",
                                    doc = "Larger of two arrays; a number beats NaN.";
  static constexpr int arity = 2;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T a, T b) {
    return select(a != a, b, select(b != b, a, maximum(a, b)));
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    const T other = select(a == a, T(1), select(b == b, T(0), a));
    return select(a > b, T(1), select(a < b, T(0), select(a == b, T(0.5), other)));
  }
  template <class T>
  static T slope_b(T a, T b, T) {
    return slope_a(b, a, a);
  }
};

struct Fmin {
  static constexpr std::string_view name = "fmin",
                                    doc = "Smaller of two arrays; a number beats NaN.";
  static constexpr int arity = 2;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T a, T b) {
    return select(a != a, b, select(b != b, a, minimum(a, b)));
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    return Fmax::slope_a(-a, -b, a);
  }
  template <class T>
  static T slope_b(T a, T b, T) {
    return slope_a(b, a, a);
  }
};

struct Absolute {
  static constexpr std::string_view name = "absolute", doc = "|x|; its slope at 0 is 0.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return abs(x);
  }
  template <class T>
  static T slope(T x, T) {
    return sign(x);
  }
};

struct Sign {
  static constexpr std::string_view name = "sign", doc = "-1, 0 or 1.";
  static constexpr int arity = 1;
  static constexpr bool piecewise_constant = true;
  template <class T>
  static T value(T x) {
    return sign(x);
  }
};

}  // namespace

std::vector<Op> selection_ops() {
  return elementwise_ops<Where, Maximum, Minimum, Fmax, Fmin, Absolute, Sign>();
}

}  // namespace buropt
