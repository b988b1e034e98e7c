// sum {"axes"}, {"keepdims"}: over axes of the sample.
#include "math/reduce.h"
#include "ops/axes.h"
#include "ops/families.h"

namespace buropt {
namespace {

constexpr std::string_view kName = "sum";

Type infer(std::span<const Type> in, const Attributes& attributes) {
  return infer_reduction(kName, in[0], attributes);
}

/// A sum over several groups of axes that are not neighbours is done one group at a time, from the
/// back, so that the kernel sees (kept, summed, kept).
NodeId simplify(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const Type type = e.type(inputs[0]);
  const std::array<Type, 1> in{type};
  const Shape result = infer(in, attributes).shape;
  const std::vector<std::int64_t> result_shape(result.begin(), result.end());
  const std::vector<bool> summed = reduced_axes(kName, type.shape, attributes);
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
  const auto kept = kept_shape(whole, reduced_axes(kName, whole, node.attributes));
  const NodeId spread = e.emit("reshape", {cotangent}, Attributes(kept));
  cotangents[0] = e.emit("broadcast_to", {spread}, Attributes({whole.begin(), whole.end()}));
}

/// Leading axes are summed together with the samples. (A number for each sample stays one: its sum
/// is then the same in every program.)
NodeId batch_sum(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const std::array<Type, 1> in{e.type(inputs[0])};
  const std::vector<bool> summed = reduced_axes(kName, in[0].shape, attributes);
  std::int64_t leading = 0;
  for (int axis = 0; axis < in[0].shape.rank(); ++axis) {
    if (!summed[static_cast<std::size_t>(axis)]) continue;
    if (axis != leading) return kNone;
    ++leading;
  }
  if (leading == 0 || leading == in[0].shape.rank()) return kNone;
  const Shape shape = infer(in, attributes).shape;
  const NodeId total = e.emit("batch_sum", {inputs[0]}, Attributes({leading}));
  return e.emit("reshape", {total}, Attributes({shape.begin(), shape.end()}));
}

/// (kept, summed, kept): the builder has split any other sum.
AroundAxis around(const Shape& shape, const Attributes& attributes) {
  const auto found = around_reduced(shape, reduced_axes(kName, shape, attributes));
  BUROPT_ASSERT(found.has_value());
  return *found;
}

template <class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* n = s.numbers.data();
  sum_axis(buffer_as<const T>(frame, s.in[0]), s.rows(frame) * n[0], n[1], n[2],
           buffer_as<T>(frame, s.out), false);
}

void lower(const LowerContext& c, Instruction& s) {
  const auto [outer, n, inner] = around(c.in[0].shape, c.attributes);
  s.numbers = {outer, n, inner};
  s.run = c.out.dtype == DType::float32 ? kernel<float> : kernel<double>;
}

void elements(ElementEmitter& e) {
  const auto [outer, n, inner] = around(e.in_type(0).shape, e.attributes());
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      std::int32_t total = e.zero();
      for (std::int64_t r = 0; r < n; ++r) {
        total = e.emit("add", {total, e.in(0, (o * n + r) * inner + i)});
      }
      e.out(o * inner + i, total);
    }
  }
}

}  // namespace

std::vector<Op> sum_ops() {
  Op op;
  op.name = kName;
  op.doc = "Sum over axes.";
  op.attributes = {"axes", "keepdims"};
  op.simplify = simplify;
  op.infer = infer;
  op.linearity = Linearity::jointly;
  op.reverse = reverse;
  op.batch_sum = batch_sum;
  op.lower = lower;
  op.elements = elements;
  return {op};
}

}  // namespace buropt
