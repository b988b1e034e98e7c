// reshape, transpose, broadcast_to: the same elements in another arrangement.
#include <numeric>

#include "ops/axes.h"
#include "ops/families.h"
#include "ops/strided.h"

namespace buropt {
namespace {

/// The operand itself when the primitive would not change its type.
template <class Infer>
NodeId unchanged(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes,
                 Infer infer) {
  const std::array<Type, 1> in{e.type(inputs[0])};
  return infer(in, attributes) == in[0] ? inputs[0] : kNone;
}

std::vector<std::int64_t> extents(const Shape& shape) { return {shape.begin(), shape.end()}; }

// ---- reshape {"shape"}: at most one -1, as in NumPy. Shares the operand's buffer.

Type infer_reshape(std::span<const Type> in, const Attributes& attributes) {
  Type out = dense("reshape", in[0]);
  const std::int64_t size = in[0].size();
  out.shape = Shape(attributes[0]);
  int unknown = -1;
  std::int64_t known = 1;
  for (int axis = 0; axis < out.shape.rank(); ++axis) {
    if (out.shape[axis] == -1 && unknown < 0)
      unknown = axis;
    else
      known *= out.shape[axis];
  }
  if (unknown >= 0 && known > 0 && size % known == 0) out.shape[unknown] = size / known;
  if (out.shape.size() != size) {
    raise(ErrorKind::value, "buropt.reshape: %s has %lld elements and cannot become %s",
          in[0].shape.str().c_str(), static_cast<long long>(size),
          Shape(attributes[0]).str().c_str());
  }
  return out;
}

NodeId simplify_reshape(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  static const OpId reshape = find_op("reshape");
  const NodeId same = unchanged(e, inputs, attributes, infer_reshape);
  if (same != kNone) return same;
  const Definition d = e.definition(inputs[0]);
  if (d.op != reshape) return kNone;
  const std::array<Type, 1> in{e.type(inputs[0])};
  return e.emit("reshape", {d.inputs[0]}, Attributes(extents(infer_reshape(in, attributes).shape)));
}

void reverse_reshape(Emitter& e, const NodeView& node, NodeId cotangent,
                     std::span<NodeId> cotangents) {
  cotangents[0] = e.emit("reshape", {cotangent}, Attributes(extents(e.type(node.inputs[0]).shape)));
}

void reshape_elements(ElementEmitter& e) {
  for (std::int64_t i = 0; i < e.out_type().size(); ++i) e.out(i, e.in(0, i));
}

Op reshape_op() {
  Op op;
  op.name = "reshape";
  op.doc = "The same elements in another shape.";
  op.attributes = {"shape"};
  op.alias = true;
  op.simplify = simplify_reshape;
  op.infer = infer_reshape;
  op.linearity = Linearity::jointly;
  op.reverse = reverse_reshape;
  op.batch_sum = [](Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
    return e.emit("reshape", {e.emit("batch_sum", {inputs[0]})}, attributes);
  };
  op.elements = reshape_elements;
  return op;
}

// ---- independent: the same value as a variable of its own. What is differentiated by
// it does not see how it was computed. It exists only in a graph under construction.

Op independent_op() {
  Op op;
  op.name = "independent";
  op.doc = "The same value as a variable of its own.";
  op.derived = true;
  op.alias = true;
  op.opaque = true;
  op.infer = [](std::span<const Type> in, const Attributes&) {
    return dense("independent", in[0]);
  };
  op.linearity = Linearity::jointly;
  op.reverse = [](Emitter&, const NodeView&, NodeId cotangent, std::span<NodeId> cotangents) {
    cotangents[0] = cotangent;
  };
  op.elements = reshape_elements;
  return op;
}

// ---- transpose {"axes"}: a permutation of the axes.

StridedView transpose_view(const Type& in, const Attributes& attributes) {
  StridedView view;
  const auto strides = in.shape.strides();
  for (const std::int64_t axis : attributes[0]) {
    view.extents.push_back(in.shape[static_cast<int>(axis)]);
    view.strides.push_back(strides[static_cast<std::size_t>(axis)]);
  }
  return view;
}

Type infer_transpose(std::span<const Type> in, const Attributes& attributes) {
  Type out = dense("transpose", in[0]);
  const auto& axes = attributes[0];
  const auto rank = static_cast<std::size_t>(in[0].shape.rank());
  std::vector<bool> seen(rank, false);
  bool valid = axes.size() == rank;
  for (const std::int64_t axis : axes) {
    valid = valid && axis >= 0 && static_cast<std::size_t>(axis) < rank &&
            !seen[static_cast<std::size_t>(axis)];
    if (valid) seen[static_cast<std::size_t>(axis)] = true;
  }
  if (!valid) {
    raise(ErrorKind::value, "buropt.transpose: axes %s are not a permutation of the axes of %s",
          Shape(axes).str().c_str(), in[0].shape.str().c_str());
  }
  out.shape = transpose_view(in[0], attributes).extents;
  return out;
}

void reverse_transpose(Emitter& e, const NodeView& node, NodeId cotangent,
                       std::span<NodeId> cotangents) {
  const auto& axes = node.attributes[0];
  std::vector<std::int64_t> inverse(axes.size());
  for (std::size_t i = 0; i < axes.size(); ++i) {
    inverse[static_cast<std::size_t>(axes[i])] = static_cast<std::int64_t>(i);
  }
  cotangents[0] = e.emit("transpose", {cotangent}, Attributes(inverse));
}

Op transpose_op() {
  Op op;
  op.name = "transpose";
  op.doc = "Axes in another order.";
  op.attributes = {"axes"};
  op.simplify = [](Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
    const auto& axes = attributes[0];
    std::vector<std::int64_t> sorted(axes.size());
    std::iota(sorted.begin(), sorted.end(), 0);
    return sorted == axes ? unchanged(e, inputs, attributes, infer_transpose) : kNone;
  };
  op.infer = infer_transpose;
  op.linearity = Linearity::jointly;
  op.reverse = reverse_transpose;
  op.lower = [](const LowerContext& c, Instruction& s) {
    lower_gather(transpose_view(c.in[0], c.attributes), c, s);
  };
  op.elements = [](ElementEmitter& e) {
    gather_elements(transpose_view(e.in_type(0), e.attributes()), e);
  };
  return op;
}

// ---- broadcast_to {"shape"}: NumPy's rule.

StridedView broadcast_view(const Type& in, const Shape& shape) {
  StridedView view;
  view.extents = shape;
  const auto strides = in.shape.strides();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int own = axis - (shape.rank() - in.shape.rank());
    const bool repeats = own < 0 || in.shape[own] == 1;
    view.strides.push_back(repeats ? 0 : strides[static_cast<std::size_t>(own)]);
  }
  return view;
}

Type infer_broadcast_to(std::span<const Type> in, const Attributes& attributes) {
  Type out = dense("broadcast_to", in[0]);
  out.shape = Shape(attributes[0]);
  const int skip = out.shape.rank() - in[0].shape.rank();
  bool valid = skip >= 0;
  for (int axis = 0; valid && axis < in[0].shape.rank(); ++axis) {
    valid = in[0].shape[axis] == 1 || in[0].shape[axis] == out.shape[axis + skip];
  }
  if (!valid) {
    raise(ErrorKind::value, "buropt.broadcast_to: %s does not broadcast to %s",
          in[0].shape.str().c_str(), out.shape.str().c_str());
  }
  return out;
}

void reverse_broadcast_to(Emitter& e, const NodeView& node, NodeId cotangent,
                          std::span<NodeId> cotangents) {
  const Shape& from = e.type(node.inputs[0]).shape;
  const Shape& to = e.type(node.id).shape;
  const int skip = to.rank() - from.rank();
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < to.rank(); ++axis) {
    if (axis < skip || (from[axis - skip] == 1 && to[axis] != 1)) axes.push_back(axis);
  }
  const NodeId sum = e.emit("sum", {cotangent}, Attributes(axes, {0}));
  cotangents[0] = e.emit("reshape", {sum}, Attributes(extents(from)));
}

Op broadcast_to_op() {
  Op op;
  op.name = "broadcast_to";
  op.doc = "Repeats along axes of length 1.";
  op.attributes = {"shape"};
  op.simplify = [](Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
    return unchanged(e, inputs, attributes, infer_broadcast_to);
  };
  op.infer = infer_broadcast_to;
  op.linearity = Linearity::jointly;
  op.reverse = reverse_broadcast_to;
  op.lower = [](const LowerContext& c, Instruction& s) {
    lower_gather(broadcast_view(c.in[0], c.out.shape), c, s);
  };
  op.elements = [](ElementEmitter& e) {
    gather_elements(broadcast_view(e.in_type(0), e.out_type().shape), e);
  };
  return op;
}

}  // namespace

std::vector<Op> shape_ops() {
  return {reshape_op(), independent_op(), transpose_op(), broadcast_to_op()};
}

}  // namespace buropt
