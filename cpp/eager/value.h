// Eager scalars: a graph that is built while its values are computed, and whose derivatives are
// accumulated by walking it backwards. For functions whose shape differs from call to call; what
// keeps its shape belongs in a compiled graph.
//
// A node is a plain record. Whoever makes it owns it, and keeps its operands alive for as long as
// it lives (at the binding the Python objects do, by their reference counts). Nothing here
// allocates, recurses or fails: the walk threads its stack and its order through the nodes.
#pragma once

#include <cstdint>

namespace buropt::eager {

enum class Op : std::uint8_t {
  leaf,           // has no operands
  opaque,         // operands for show: nothing flows back through it
  add,            // a + b
  multiply,       // a * b
  quotient,       // a * b where one of them is a reciprocal; its value is the correctly rounded one
  integer_power,  // a ** number, the number written as an integer
  real_power,     // a ** number
  power,          // a ** b
  relu,
  tanh,
  exp,
  log,
  sqrt,
  sin,
  cos,
  sigmoid,
  abs,
};

struct Node {
  double data = 0;
  double grad = 0;
  Node* a = nullptr;
  Node* b = nullptr;
  double number = 0;       // the second operand where b is null: a constant factor, an exponent
  double number_grad = 0;  // what has flowed to that constant
  Node* link = nullptr;    // the next node of a list: of a walk's stack or order, or of the dying
  Op op = Op::leaf;
  std::uint8_t visits = 0;  // of the walk under way
};

/// The value of an operation; functions of one operand ignore the second.
double evaluate(Op op, double a, double b = 0) noexcept;

/// Adds what a node's gradient contributes to the gradients of its operands.
void pull(Node& node) noexcept;

/// Sets the gradient of `root` to 1 and pulls through everything below it, users before operands.
void backward(Node& root) noexcept;

}  // namespace buropt::eager
