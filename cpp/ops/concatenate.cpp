// concatenate {"axis"}: any number of arrays along an existing axis.
#include <algorithm>

#include "ops/families.h"

namespace buropt {
namespace {

Type infer(std::span<const Type> in, const Attributes& attributes) {
  if (in.empty()) raise(ErrorKind::value, "buropt.concatenate: needs at least one array");
  const int axis = static_cast<int>(attributes[0].at(0));
  Type out = in[0];
  for (std::size_t k = 0; k < in.size(); ++k) {
    bool valid = !in[k].csr && in[k].shape.rank() == out.shape.rank() && axis >= 0 &&
                 axis < in[k].shape.rank();
    for (int a = 0; valid && a < out.shape.rank(); ++a) {
      valid = a == axis || in[k].shape[a] == out.shape[a];
    }
    if (!valid) {
      raise(
          ErrorKind::value,
          "buropt.concatenate: array 0 has shape %s and array %zu has shape %s; they must have the "
          "same axes and differ only along axis %d",
          in[0].shape.str().c_str(), k, in[k].shape.str().c_str(), axis);
    }
    if (k > 0) out.shape[axis] += in[k].shape[axis];
    out.batched = out.batched || in[k].batched;
  }
  return out;
}

void reverse(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  const auto axis = static_cast<std::size_t>(node.attributes[0][0]);
  std::int64_t start = 0;
  for (std::size_t k = 0; k < node.inputs.size(); ++k) {
    const Shape shape = e.type(node.inputs[k]).shape;
    const auto rank = static_cast<std::size_t>(shape.rank());
    std::vector<std::int64_t> starts(rank, 0);
    starts[axis] = start;
    start += shape[static_cast<int>(axis)];
    cotangents[k] = e.emit(
        "slice", {cotangent},
        Attributes(starts, {shape.begin(), shape.end()}, std::vector<std::int64_t>(rank, 1)));
  }
}

// numbers: outer extent, out run length, then per operand: run length, elements per sample (0 for
// an unbatched operand).
template <class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* n = s.numbers.data();
  T* out = buffer_as<T>(frame, s.out);
  for (std::int64_t row = 0; row < s.rows(frame); ++row) {
    for (std::int64_t o = 0; o < n[0]; ++o) {
      for (std::size_t k = 0; k < s.in.size(); ++k) {
        const std::int64_t run = n[2 + 2 * k];
        const T* in = buffer_as<const T>(frame, s.in[k]) + row * n[3 + 2 * k] + o * run;
        out = std::copy_n(in, run, out);
      }
    }
  }
}

void lower(const LowerContext& c, Instruction& s) {
  const int axis = static_cast<int>(c.attributes[0][0]);
  const int rank = c.out.shape.rank();
  s.numbers = {c.out.shape.product(0, axis), c.out.shape.product(axis, rank)};
  for (const Type& in : c.in) {
    s.numbers.push_back(in.shape.product(axis, rank));
    s.numbers.push_back(in.batched ? in.size() : 0);
  }
  s.run = c.out.dtype == DType::float32 ? kernel<float> : kernel<double>;
}

void elements(ElementEmitter& e) {
  const int axis = static_cast<int>(e.attributes()[0][0]);
  const Shape& shape = e.out_type().shape;
  const std::int64_t run = shape.product(axis, shape.rank());
  std::int64_t start = 0;
  for (int k = 0; start < run; ++k) {
    const std::int64_t own = e.in_type(k).shape.product(axis, shape.rank());
    for (std::int64_t o = 0; o < shape.product(0, axis); ++o) {
      for (std::int64_t i = 0; i < own; ++i) e.out(o * run + start + i, e.in(k, o * own + i));
    }
    start += own;
  }
}

}  // namespace

std::vector<Op> concatenate_ops() {
  Op op;
  op.name = "concatenate";
  op.doc = "Joins arrays along an axis.";
  op.arity = -1;
  op.attributes = {"axis"};
  op.infer = infer;
  op.linearity = Linearity::jointly;
  op.reverse = reverse;
  op.lower = lower;
  op.elements = elements;
  return {op};
}

}  // namespace buropt
