// slice {"starts", "sizes", "steps"}, one entry per axis, and its transpose slice_vjp, which writes
// into zeros.
#include "ops/families.h"
#include "ops/strided.h"

namespace buropt {
namespace {

/// The view that a slice takes of an array of this shape.
StridedView slice_view(const Shape& whole, const Shape& part, std::span<const std::int64_t> starts,
                       std::span<const std::int64_t> steps) {
  StridedView view;
  view.extents = part;
  const auto strides = whole.strides();
  for (std::size_t axis = 0; axis < starts.size(); ++axis) {
    view.offset += starts[axis] * strides[axis];
    view.strides.push_back(steps[axis] * strides[axis]);
  }
  return view;
}

Type infer_slice(std::span<const Type> in, const Attributes& attributes) {
  Type out = in[0];
  if (in[0].csr) {
    raise(ErrorKind::type,
          "buropt.slice: a sparse row only supports products with a vector or matrix (a @ x)");
  }
  const auto& [starts, sizes, steps] = attributes.lists;
  const auto rank = static_cast<std::size_t>(in[0].shape.rank());
  bool valid = starts.size() == rank && sizes.size() == rank && steps.size() == rank;
  for (std::size_t axis = 0; valid && axis < rank; ++axis) {
    const std::int64_t extent = in[0].shape[static_cast<int>(axis)];
    const std::int64_t last = starts[axis] + (sizes[axis] - 1) * steps[axis];
    valid = sizes[axis] == 0 || (sizes[axis] > 0 && starts[axis] >= 0 && starts[axis] < extent &&
                                 last >= 0 && last < extent);
  }
  if (!valid) {
    raise(ErrorKind::index,
          "buropt.slice: starts %s, sizes %s, steps %s leave the array of shape %s",
          Shape(starts).str().c_str(), Shape(sizes).str().c_str(), Shape(steps).str().c_str(),
          in[0].shape.str().c_str());
  }
  out.shape = Shape(sizes);
  return out;
}

void reverse_slice(Emitter& e, const NodeView& node, NodeId cotangent,
                   std::span<NodeId> cotangents) {
  const Shape& whole = e.type(node.inputs[0]).shape;
  cotangents[0] =
      e.emit("slice_vjp", {cotangent},
             Attributes(node.attributes[0], {whole.begin(), whole.end()}, node.attributes[2]));
}

Type infer_slice_vjp(std::span<const Type> in, const Attributes& attributes) {
  Type out = in[0];
  out.shape = Shape(attributes[1]);
  return out;
}

void reverse_slice_vjp(Emitter& e, const NodeView& node, NodeId cotangent,
                       std::span<NodeId> cotangents) {
  const Shape& part = e.type(node.inputs[0]).shape;
  cotangents[0] =
      e.emit("slice", {cotangent},
             Attributes(node.attributes[0], {part.begin(), part.end()}, node.attributes[2]));
}

}  // namespace

std::vector<Op> slice_ops() {
  Op slice;
  slice.name = "slice";
  slice.doc = "Part of an array: x[start:stop:step, ...].";
  slice.attributes = {"starts", "sizes", "steps"};
  slice.infer = infer_slice;
  slice.linearity = Linearity::jointly;
  slice.reverse = reverse_slice;
  slice.lower = [](const LowerContext& c, Instruction& s) {
    lower_gather(slice_view(c.in[0].shape, c.out.shape, c.attributes[0], c.attributes[2]), c, s);
  };
  slice.elements = [](ElementEmitter& e) {
    gather_elements(
        slice_view(e.in_type(0).shape, e.out_type().shape, e.attributes()[0], e.attributes()[2]),
        e);
  };

  Op transpose;
  transpose.name = "slice_vjp";
  transpose.doc = "Zeros of the given shape with the operand written into the slice.";
  transpose.attributes = {"starts", "shape", "steps"};
  transpose.derived = true;
  transpose.infer = infer_slice_vjp;
  transpose.linearity = Linearity::jointly;
  transpose.reverse = reverse_slice_vjp;
  transpose.lower = [](const LowerContext& c, Instruction& s) {
    lower_scatter(slice_view(c.out.shape, c.in[0].shape, c.attributes[0], c.attributes[2]), c, s);
  };
  transpose.elements = [](ElementEmitter& e) {
    scatter_elements(
        slice_view(e.out_type().shape, e.in_type(0).shape, e.attributes()[0], e.attributes()[2]),
        e);
  };
  return {slice, transpose};
}

}  // namespace buropt
