#include "eager/value.h"

#include <limits>

#include "math/elementary.h"

namespace buropt::eager {
namespace {

/// A zero cotangent gives zero, whatever the slope is. Products are rounded before they are summed,
/// so that the bits of a gradient do not depend on whether the target has an fma.
double guarded(double cotangent, double slope) noexcept {
  const double product = rounded_product(cotangent, slope);
  return cotangent == 0 && isnan(product) ? 0 : product;
}

bool is_int32(double x) noexcept {
  return x > std::numeric_limits<std::int32_t>::min() &&
         x <= std::numeric_limits<std::int32_t>::max() && x == static_cast<std::int32_t>(x);
}

/// x ** n for a constant n: no logarithm where n is a whole number.
double constant_power(double x, double n) noexcept {
  if (is_int32(n)) return powi(x, static_cast<int>(n));
  return n == 0.5 ? sqrt(x) : pow(x, n);
}

double pull_constant_power(double cotangent, double x, double n, double y) noexcept {
  if (n == 0) return 0;
  if (n == 2) return rounded_product(cotangent, x + x);
  // -y * y alone would underflow for a large x, although the cotangent makes up for it.
  if (n == -1) return guarded(-guarded(cotangent, y), y);
  if (n == 0.5) return guarded(cotangent, 0.5 / y);
  if (is_int32(n)) return guarded(cotangent, n * powi(x, static_cast<int>(n) - 1));
  return guarded(cotangent, n * pow(x, n - 1));
}

void pull_power(double cotangent, Node& base, Node& exponent, double y) noexcept {
  const double a = base.data;
  const double b = exponent.data;
  const double slope = b * pow(a, b - 1);
  base.grad += guarded(cotangent, b == 0 && isnan(slope) ? 0 : slope);
  // The logarithm counts only where the base is not 0: 0^b does not move with b.
  exponent.grad += guarded(cotangent, a == 0 ? 0 : y * log(a));
}

/// The derivative of tanh from exp(-2|x|): 1 - y * y would lose its digits from |x| = 3 on.
double tanh_slope(double x) noexcept {
  const double e = exp(-2 * abs(x));
  return 4 * e / ((1 + e) * (1 + e));
}

}  // namespace

double evaluate(Op op, double a, double b) noexcept {
  switch (op) {
    case Op::add:
      return a + b;
    case Op::multiply:
    case Op::quotient:
      return a * b;
    case Op::integer_power:
    case Op::real_power:
      return constant_power(a, b);
    case Op::power:
      return pow(a, b);
    case Op::relu:
      return a < 0 ? 0 : a;
    case Op::tanh:
      return tanh(a);
    case Op::exp:
      return exp(a);
    case Op::log:
      return log(a);
    case Op::sqrt:
      return sqrt(a);
    case Op::sin:
      return sin(a);
    case Op::cos:
      return cos(a);
    case Op::sigmoid:
      return expit(a);
    case Op::abs:
      return abs(a);
    case Op::leaf:
    case Op::opaque:
      break;
  }
  return a;
}

void pull(Node& node) noexcept {
  const double g = node.grad;
  const double y = node.data;
  Node* a = node.a;
  Node* b = node.b;
  double& b_grad = b != nullptr ? b->grad : node.number_grad;
  const double b_data = b != nullptr ? b->data : node.number;
  switch (node.op) {
    case Op::leaf:
    case Op::opaque:
      break;
    case Op::add:
      a->grad += g;
      b_grad += g;
      break;
    case Op::multiply:
      a->grad += rounded_product(b_data, g);
      b_grad += rounded_product(a->data, g);
      break;
    case Op::quotient:
      a->grad += guarded(g, b_data);
      b_grad += guarded(g, a->data);
      break;
    case Op::integer_power:
    case Op::real_power:
      a->grad += pull_constant_power(g, a->data, node.number, y);
      break;
    case Op::power:
      pull_power(g, *a, *b, y);
      break;
    case Op::relu:
      if (y > 0) a->grad += g;
      break;
    case Op::tanh:
      a->grad += rounded_product(g, tanh_slope(a->data));
      break;
    case Op::exp:
      a->grad += rounded_product(g, y);
      break;
    case Op::log:
      a->grad += guarded(g, 1 / a->data);
      break;
    case Op::sqrt:
      a->grad += guarded(g, 0.5 / y);
      break;
    case Op::sin:
      a->grad += rounded_product(g, cos(a->data));
      break;
    case Op::cos:
      a->grad += rounded_product(g, -sin(a->data));
      break;
    case Op::sigmoid:
      a->grad += rounded_product(g, y * expit(-a->data));
      break;
    case Op::abs:
      a->grad += rounded_product(g, sign(a->data));
      break;
  }
}

void backward(Node& root) noexcept {
  // Depth first. A node on the stack links to the one that led to it; a finished one to what was
  // finished before, so that in the end the list starts at the root and has users before operands.
  enum : std::uint8_t { unseen, at_a, at_b, finished };
  Node* order = nullptr;
  Node* top = &root;
  root.link = nullptr;
  root.visits = at_a;
  while (top != nullptr) {
    Node& node = *top;
    if (node.visits == finished) {
      top = node.link;
      node.link = order;
      order = &node;
      continue;
    }
    Node* next = node.visits == at_a ? node.a : node.b;
    ++node.visits;
    if (next != nullptr && next->visits == unseen && next->op != Op::leaf) {
      next->visits = at_a;
      next->link = top;
      top = next;
    }
  }
  root.grad = 1;
  for (Node* node = order; node != nullptr; node = node->link) {
    node->visits = unseen;
    pull(*node);
  }
}

}  // namespace buropt::eager
