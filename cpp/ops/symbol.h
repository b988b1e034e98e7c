// Symbol: the number type that turns a primitive's slope formula into graph nodes.
//
// A formula `template <class T> T slope(T x, T y)` run on floats is a kernel; run on symbols it is
// the derivative rule. A symbol without a graph is a plain number until it meets one that has.
#pragma once

#include <initializer_list>

#include "ops/op.h"

namespace buropt {

class Symbol {
 public:
  Symbol(double value) : value_(value) {}
  Symbol(Emitter& e, NodeId node) : emitter_(&e), node_(node) {}

  bool is_number() const { return emitter_ == nullptr; }
  bool is_number(double value) const { return is_number() && value_ == value; }
  Emitter* emitter() const { return emitter_; }
  NodeId node() const { return node_; }
  double value() const { return value_; }

  /// This symbol as a node of e's graph.
  NodeId in(Emitter& e, DType dtype) const {
    return is_number() ? e.constant(value_, dtype) : node_;
  }

 private:
  Emitter* emitter_ = nullptr;
  NodeId node_ = kNone;
  double value_ = 0;
};

inline Symbol apply(std::string_view name, std::initializer_list<Symbol> operands,
                    const Attributes& attributes = {}) {
  Emitter* e = nullptr;
  DType dtype = DType::float64;
  for (const Symbol& s : operands) {
    if (s.is_number()) continue;
    e = s.emitter();
    dtype = e->type(s.node()).dtype;
  }
  std::array<NodeId, 3> nodes{};
  std::size_t n = 0;
  for (const Symbol& s : operands) nodes[n++] = s.in(*e, dtype);
  return {*e, e->emit(find_op(name), std::span<const NodeId>(nodes.data(), n), attributes)};
}

inline Symbol operator+(Symbol a, Symbol b) {
  if (a.is_number() && b.is_number()) return a.value() + b.value();
  return apply("add", {a, b});
}
inline Symbol operator-(Symbol a, Symbol b) {
  if (a.is_number() && b.is_number()) return a.value() - b.value();
  return apply("subtract", {a, b});
}
inline Symbol operator*(Symbol a, Symbol b) {
  if (a.is_number() && b.is_number()) return a.value() * b.value();
  if (a.is_number(1)) return b;
  if (b.is_number(1)) return a;
  if (a.is_number(-1)) return apply("negative", {b});
  if (b.is_number(-1)) return apply("negative", {a});
  return apply("multiply", {a, b});
}
inline Symbol operator/(Symbol a, Symbol b) {
  if (a.is_number() && b.is_number()) return a.value() / b.value();
  return apply("divide", {a, b});
}
inline Symbol operator-(Symbol a) {
  return a.is_number() ? Symbol(-a.value()) : apply("negative", {a});
}
inline Symbol operator>(Symbol a, Symbol b) { return apply("greater", {a, b}); }
inline Symbol operator>=(Symbol a, Symbol b) { return apply("greater_equal", {a, b}); }
inline Symbol operator<(Symbol a, Symbol b) { return apply("less", {a, b}); }
inline Symbol operator<=(Symbol a, Symbol b) { return apply("less_equal", {a, b}); }
inline Symbol operator==(Symbol a, Symbol b) { return apply("equal", {a, b}); }
inline Symbol operator!=(Symbol a, Symbol b) { return apply("not_equal", {a, b}); }
inline Symbol operator&(Symbol a, Symbol b) { return apply("logical_and", {a, b}); }
inline Symbol operator|(Symbol a, Symbol b) { return apply("logical_or", {a, b}); }
inline Symbol operator!(Symbol a) { return apply("logical_not", {a}); }
inline Symbol select(Symbol mask, Symbol a, Symbol b) { return apply("where", {mask, a, b}); }
inline Symbol exp(Symbol x) { return apply("exp", {x}); }
inline Symbol log(Symbol x) { return apply("log", {x}); }
inline Symbol log1p(Symbol x) { return apply("log1p", {x}); }
inline Symbol sin(Symbol x) { return apply("sin", {x}); }
inline Symbol cos(Symbol x) { return apply("cos", {x}); }
inline Symbol sqrt(Symbol x) { return apply("sqrt", {x}); }
inline Symbol sign(Symbol x) { return apply("sign", {x}); }
inline Symbol abs(Symbol x) { return apply("absolute", {x}); }
inline Symbol sinh(Symbol x) { return apply("sinh", {x}); }
inline Symbol cosh(Symbol x) { return apply("cosh", {x}); }
inline Symbol hypot(Symbol x, Symbol y) { return apply("hypot", {x, y}); }
inline Symbol rint(Symbol x) { return apply("rint", {x}); }
inline Symbol copysign(Symbol x, Symbol y) { return apply("copysign", {x, y}); }
inline Symbol expit(Symbol x) { return apply("expit", {x}); }
inline Symbol ndtr(Symbol x) { return apply("ndtr", {x}); }
inline Symbol pow(Symbol x, Symbol y) { return apply("power", {x, y}); }

/// A primitive that has the attribute "n", such as integer_power.
inline Symbol apply_indexed(std::string_view name, Symbol x, std::int64_t n) {
  return apply(name, {x}, Attributes({n}));
}

}  // namespace buropt
