// sum {"axes"}, {"keepdims"}: over axes of the sample.
#include <algorithm>

#include "math/reduce.h"
#include "ops/families.h"

namespace buropt {
namespace {

std::vector<bool> summed_axes(const Shape& shape, const Attributes& attributes) {
  std::vector<bool> summed(static_cast<std::size_t>(shape.rank()), false);
  for (const std::int64_t axis : attributes[0]) {
    if (axis < 0 || axis >= shape.rank()) {
      raise(ErrorKind::value, "buropt.sum: axis %lld is out of range for an array of shape %s",
            static_cast<long long>(axis), shape.str().c_str());
    }
    summed[static_cast<std::size_t>(axis)] = true;
  }
  return summed;
}

Type infer(std::span<const Type> in, const Attributes& attributes) {
  if (in[0].csr) {
    raise(ErrorKind::type,
          "buropt.sum: a sparse row only supports products with a vector or matrix (a @ x)");
  }
  const std::vector<bool> summed = summed_axes(in[0].shape, attributes);
  Type out = in[0];
  out.shape = Shape();
  for (int axis = 0; axis < in[0].shape.rank(); ++axis) {
    if (!summed[static_cast<std::size_t>(axis)])
      out.shape.push_back(in[0].shape[axis]);
    else if (attributes[1].at(0) != 0)
      out.shape.push_back(1);
  }
  return out;
}

/// A sum over several groups of axes that are not neighbours is done one group at a time, from the
/// back, so that the kernel sees (kept, summed, kept).
NodeId simplify(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const Type type = e.type(inputs[0]);
  const std::array<Type, 1> in{type};
  const Shape result = infer(in, attributes).shape;
  const std::vector<std::int64_t> result_shape(result.begin(), result.end());
  const std::vector<bool> summed = summed_axes(type.shape, attributes);
  std::vector<std::int64_t> last_group;
  std::vector<std::int64_t> others;
  for (int axis = type.shape.rank() - 1; axis >= 0; --axis) {
    if (!summed[static_cast<std::size_t>(axis)]) continue;
    if (type.shape[axis] == 1) continue;
    bool adjacent = others.empty();
    for (int between = axis + 1; adjacent && !last_group.empty() && between < last_group.back();
         ++between) {
      adjacent = summed[static_cast<std::size_t>(between)] || type.shape[between] == 1;
    }
    (adjacent ? last_group : others).push_back(axis);
  }
  if (last_group.empty()) return e.emit("reshape", {inputs[0]}, Attributes(result_shape));
  if (others.empty()) return kNone;
  const NodeId first = e.emit("sum", {inputs[0]}, Attributes(last_group, {1}));
  const NodeId rest = e.emit("sum", {first}, Attributes(others, {1}));
  return e.emit("reshape", {rest}, Attributes(result_shape));
}

void reverse(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  const Shape& whole = e.type(node.inputs[0]).shape;
  std::vector<std::int64_t> kept(whole.begin(), whole.end());
  const std::vector<bool> summed = summed_axes(whole, node.attributes);
  for (std::size_t axis = 0; axis < kept.size(); ++axis) {
    if (summed[axis]) kept[axis] = 1;
  }
  const NodeId spread = e.emit("reshape", {cotangent}, Attributes(kept));
  cotangents[0] = e.emit("broadcast_to", {spread}, Attributes({whole.begin(), whole.end()}));
}

/// Axes in runs: alternating kept and summed groups, merged; (kept, summed, kept) at most, or the
/// builder has split the sum.
std::array<std::int64_t, 3> groups(const Shape& shape, const std::vector<bool>& summed) {
  std::array<std::int64_t, 3> extents{1, 1, 1};
  std::size_t group = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const bool is_summed = summed[static_cast<std::size_t>(axis)];
    if (shape[axis] == 1) continue;
    if (is_summed != (group == 1)) ++group;
    BUROPT_ASSERT(group < 3);
    extents[group] *= shape[axis];
  }
  return extents;
}

template <class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* n = s.numbers.data();
  sum_axis(buffer_as<const T>(frame, s.in[0]), s.rows(frame) * n[0], n[1], n[2],
           buffer_as<T>(frame, s.out), false);
}

void lower(const LowerContext& c, Instruction& s) {
  const auto extents = groups(c.in[0].shape, summed_axes(c.in[0].shape, c.attributes));
  s.numbers = {extents.begin(), extents.end()};
  s.run = c.out.dtype == DType::float32 ? kernel<float> : kernel<double>;
}

void elements(ElementEmitter& e) {
  const auto n = groups(e.in_type(0).shape, summed_axes(e.in_type(0).shape, e.attributes()));
  for (std::int64_t o = 0; o < n[0]; ++o) {
    for (std::int64_t i = 0; i < n[2]; ++i) {
      std::int32_t total = e.zero();
      for (std::int64_t r = 0; r < n[1]; ++r) {
        total = e.emit("add", {total, e.in(0, (o * n[1] + r) * n[2] + i)});
      }
      e.out(o * n[2] + i, total);
    }
  }
}

}  // namespace

std::vector<Op> sum_ops() {
  Op op;
  op.name = "sum";
  op.doc = "Sum over axes.";
  op.attributes = {"axes", "keepdims"};
  op.simplify = simplify;
  op.infer = infer;
  op.linearity = Linearity::jointly;
  op.reverse = reverse;
  op.lower = lower;
  op.elements = elements;
  return {op};
}

}  // namespace buropt
