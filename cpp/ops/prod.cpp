// prod {"axes"}, {"keepdims"}: over axes of the sample.
//
// The derivative by one element is the product of those before it times the product of those behind
// it, both of them cumprod; so it is right at any number of zeros and to any order.
#include <algorithm>

#include "ops/axes.h"
#include "ops/families.h"

namespace buropt {
namespace {

constexpr std::string_view kName = "prod";

Type infer(std::span<const Type> in, const Attributes& attributes) {
  return infer_reduction(kName, in[0], attributes);
}

NodeId simplify(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const Type type = e.type(inputs[0]);
  const Shape result = infer_reduction(kName, type, attributes).shape;
  if (result.size() == type.size() && type.size() > 0) {
    return e.emit("reshape", {inputs[0]}, Attributes({result.begin(), result.end()}));
  }
  return gather_reduced_axes(e, kName, inputs[0], attributes);
}

/// (kept, reduced, kept): the builder has moved any other axes.
AroundAxis around(const Shape& shape, const Attributes& attributes) {
  const auto found = around_reduced(shape, reduced_axes(kName, shape, attributes));
  BUROPT_ASSERT(found.has_value());
  return *found;
}

void reverse(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  const Shape whole = e.type(node.inputs[0]).shape;
  const auto [outer, n, inner] = around(whole, node.attributes);
  const NodeId x = e.emit("reshape", {node.inputs[0]}, Attributes({outer, n, inner}));
  const NodeId given = e.emit("reshape", {cotangent}, Attributes({outer, 1, inner}));
  const NodeId before = e.emit("cumprod", {x}, Attributes({1}, {0}, {1}));
  const NodeId behind = e.emit("cumprod", {x}, Attributes({1}, {1}, {1}));
  const NodeId slope = e.emit("multiply", {before, behind});
  NodeId result = e.emit("multiply", {given, slope});
  if (node.guarded) {
    const NodeId zero = e.constant(0, e.type(x).dtype);
    result = without_nan(e, e.emit("equal", {given, zero}), result);
  }
  cotangents[0] = e.emit("reshape", {result}, Attributes({whole.begin(), whole.end()}));
}

// numbers: outer, n, inner.
template <class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const std::int64_t inner = s.numbers[2];
  const std::int64_t outer = s.numbers[0] * s.rows(frame);
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  for (std::int64_t o = 0; o < outer; ++o, out += inner) {
    std::fill_n(out, inner, T(1));
    for (std::int64_t r = 0; r < n; ++r, in += inner) {
      for (std::int64_t i = 0; i < inner; ++i) out[i] *= in[i];
    }
  }
}

void elements(ElementEmitter& e) {
  const auto [outer, n, inner] = around(e.in_type(0).shape, e.attributes());
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      std::int32_t product = n == 0 ? e.constant(1) : e.in(0, o * n * inner + i);
      for (std::int64_t r = 1; r < n; ++r) {
        product = e.emit("multiply", {product, e.in(0, (o * n + r) * inner + i)});
      }
      e.out(o * inner + i, product);
    }
  }
}

}  // namespace

std::vector<Op> prod_ops() {
  Op op;
  op.name = kName;
  op.doc = "Product over axes.";
  op.attributes = {"axes", "keepdims"};
  op.simplify = simplify;
  op.infer = infer;
  op.reverse = reverse;
  op.lower = [](const LowerContext& c, Instruction& s) {
    const auto [outer, n, inner] = around(c.in[0].shape, c.attributes);
    s.numbers = {outer, n, inner};
    s.run = c.out.dtype == DType::float32 ? kernel<float> : kernel<double>;
  };
  op.elements = elements;
  return {op};
}

}  // namespace buropt
