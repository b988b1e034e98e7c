// add, subtract, multiply, divide, negative, reciprocal, square, sqrt, cbrt.
#include <cmath>

#include "math/elementary.h"
#include "ops/blocks.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace buropt {
namespace {

/// The operand itself when the other one is this number everywhere and changes nothing.
NodeId neutral(Emitter& e, NodeId operand, NodeId other, double number) {
  if (e.uniform_value(other) != number) return kNone;
  const Type a = e.type(operand);
  const Type b = e.type(other);
  return b.batched || a.shape.rank() < b.shape.rank() || b.size() != 1 ? kNone : operand;
}

/// What a node is the negative of, or kNone.
NodeId negated(const Emitter& e, NodeId node) {
  static const OpId negative = find_op("negative");
  const Definition d = e.definition(node);
  return d.op == negative ? d.inputs[0] : kNone;
}

/// Signs move out of products, for a sum to absorb; only where every bit stays the same.
NodeId product_of_negated(Emitter& e, std::string_view name, NodeId a, NodeId b) {
  const NodeId minus_a = negated(e, a);
  const NodeId minus_b = negated(e, b);
  if (minus_a != kNone && minus_b != kNone) return e.emit(name, {minus_a, minus_b});
  const Type ta = e.type(a);
  const Type tb = e.type(b);
  if (ta.shape != tb.shape || ta.batched != tb.batched) return kNone;
  if (minus_a != kNone) return e.emit("negative", {e.emit(name, {minus_a, b})});
  if (minus_b != kNone) return e.emit("negative", {e.emit(name, {a, minus_b})});
  return kNone;
}

/// Whether dividing by it gives the same bits as multiplying by its reciprocal.
bool is_power_of_two(double number) {
  constexpr int kMaxExponent = 100;  // of a float, whose reciprocal is a normal number as well
  int exponent = 0;
  return std::abs(std::frexp(number, &exponent)) == 0.5 && std::abs(exponent) < kMaxExponent;
}

struct Add {
  static constexpr std::string_view name = "add", doc = "Sum of two arrays.";
  static constexpr int arity = 2;
  template <class T>
  static T value(T a, T b) {
    return a + b;
  }
  static NodeId identity(Emitter& e, std::span<const NodeId> in) {
    const NodeId a = negated(e, in[0]);
    const NodeId b = negated(e, in[1]);
    if (a != kNone && a == b) return e.emit("negative", {e.emit("add", {a, a})});
    if (b != kNone) return e.emit("subtract", {in[0], b});
    return a == kNone ? kNone : e.emit("subtract", {in[1], a});
  }
  template <class T>
  static T slope_a(T, T, T) {
    return T(1);
  }
  template <class T>
  static T slope_b(T, T, T) {
    return T(1);
  }
};

struct Subtract {
  static constexpr std::string_view name = "subtract", doc = "Difference of two arrays.";
  static constexpr int arity = 2;
  template <class T>
  static T value(T a, T b) {
    return a - b;
  }
  static NodeId identity(Emitter& e, std::span<const NodeId> in) {
    const NodeId b = negated(e, in[1]);
    return b == kNone ? kNone : e.emit("add", {in[0], b});
  }
  template <class T>
  static T slope_a(T, T, T) {
    return T(1);
  }
  template <class T>
  static T slope_b(T, T, T) {
    return T(-1);
  }
};

struct Multiply {
  static constexpr std::string_view name = "multiply", doc = "Product of two arrays.";
  static constexpr int arity = 2;
  template <class T>
  static T value(T a, T b) {
    return a * b;
  }
  static NodeId identity(Emitter& e, std::span<const NodeId> in) {
    NodeId found = neutral(e, in[0], in[1], 1);
    if (found == kNone) found = neutral(e, in[1], in[0], 1);
    return found != kNone ? found : product_of_negated(e, name, in[0], in[1]);
  }
  template <class T>
  static T slope_a(T, T b, T) {
    return b;
  }
  template <class T>
  static T slope_b(T a, T, T) {
    return a;
  }
};

struct Divide {
  static constexpr std::string_view name = "divide", doc = "Quotient of two arrays.";
  static constexpr int arity = 2;
  static constexpr bool fused = true, singular = true;
  template <class T>
  static T value(T a, T b) {
    return a / b;
  }
  static NodeId identity(Emitter& e, std::span<const NodeId> in) {
    const NodeId found = neutral(e, in[0], in[1], 1);
    if (found != kNone) return found;
    const std::optional<double> b = e.uniform_value(in[1]);
    const Type type = e.type(in[1]);
    if (!b || !is_power_of_two(*b) || type.size() != 1) return kNone;
    if (type.shape.rank() > e.type(in[0]).shape.rank()) return kNone;
    return e.emit("multiply", {in[0], e.constant(1 / *b, type.dtype)});
  }
  template <class T>
  static T slope_a(T, T b, T) {
    return T(1) / b;
  }
  template <class T>
  static T slope_b(T, T b, T y) {
    return -y / b;
  }
};

struct Negative {
  static constexpr std::string_view name = "negative", doc = "Minus x.";
  static constexpr int arity = 1;
  template <class T>
  static T value(T x) {
    return -x;
  }
  static NodeId identity(Emitter& e, std::span<const NodeId> in) { return negated(e, in[0]); }
  template <class T>
  static T slope(T, T) {
    return T(-1);
  }
};

struct Reciprocal {
  static constexpr std::string_view name = "reciprocal", doc = "1 / x.";
  static constexpr int arity = 1;
  static constexpr bool fused = true, singular = true;
  static constexpr From slope_from = From::output;
  template <class T>
  static T value(T x) {
    return T(1) / x;
  }
  template <class T>
  static T slope(T, T y) {
    return -(y * y);
  }
};

struct Square {
  static constexpr std::string_view name = "square", doc = "x * x.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return x * x;
  }
  template <class T>
  static T slope(T x, T) {
    return x + x;
  }
};

struct Sqrt {
  static constexpr std::string_view name = "sqrt", doc = "Square root; its slope at 0 is +inf.";
  static constexpr int arity = 1;
  static constexpr bool fused = true, singular = true;
  static constexpr From slope_from = From::output;
  static constexpr Interval domain{0.01, 9};
  template <class T>
  static T value(T x) {
    return sqrt(x);
  }
  template <class T>
  static T slope(T, T y) {
    return T(0.5) / y;
  }
};

struct Cbrt {
  static constexpr std::string_view name = "cbrt", doc = "Cube root; its slope at 0 is +inf.";
  static constexpr int arity = 1;
  static constexpr bool fused = true, singular = true;
  static constexpr From slope_from = From::output;
  static constexpr Interval domain{0.05, 9};
  template <class T>
  static T value(T x) {
    return cbrt(x);
  }
  template <class T>
  static T slope(T, T y) {
    return number<T>(1.0 / 3) / (y * y);
  }
};

}  // namespace

std::vector<Op> arithmetic_ops() {
  return elementwise_ops<Add, Subtract, Multiply, Divide, Negative, Reciprocal, Square, Sqrt,
                         Cbrt>();
}

std::vector<BlockOp> arithmetic_block_ops() {
  return block_ops<Add, Subtract, Multiply, Divide, Negative, Reciprocal, Square, Sqrt>();
}

}  // namespace buropt
