// batch_sum {"leading"} and to_batched: the passage between values of a sample and values of the
// whole batch.
//
// An unbatched value used by every sample gets, in reverse, the sum of the samples' cotangents. The
// leading axes of a sample can be summed with the samples: a bias added to every position of every
// sample is one pass over all of them.
#include <algorithm>

#include "math/reduce.h"
#include "ops/axes.h"
#include "ops/families.h"

namespace buropt {
namespace {

int leading_of(const Attributes& attributes) {
  return attributes[0].empty() ? 0 : static_cast<int>(attributes[0][0]);
}

Type infer_batch_sum(std::span<const Type> in, const Attributes& attributes) {
  const int leading = leading_of(attributes);
  if (!dense("batch_sum", in[0]).batched || leading < 0 || leading > in[0].shape.rank()) {
    raise(ErrorKind::value, "buropt.batch_sum: a sample of shape %s has no %d axes to sum over",
          in[0].shape.str().c_str(), leading);
  }
  Type out = in[0];
  out.batched = false;
  out.shape = Shape();
  for (int axis = leading; axis < in[0].shape.rank(); ++axis) {
    out.shape.push_back(in[0].shape[axis]);
  }
  return out;
}

/// Primitives that only move elements let the sum pass, and products become sums themselves.
NodeId simplify_batch_sum(Emitter& e, std::span<const NodeId> inputs,
                          const Attributes& attributes_of_sum) {
  if (leading_of(attributes_of_sum) > 0) return kNone;
  const Definition d = e.definition(inputs[0]);
  if (d.op == kNoOp || op(d.op).batch_sum == nullptr) return kNone;
  const std::vector<NodeId> operands(d.inputs.begin(), d.inputs.end());
  const Attributes attributes = d.attributes;
  return op(d.op).batch_sum(e, operands, attributes);
}

template <class T>
void batch_sum_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t size = s.numbers[0];
  const std::int64_t rows = frame.rows * s.numbers[1];
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  if (size == 1)
    *out = sum(in, rows) + (frame.adds ? *out : T(0));
  else
    sum_axis(in, 1, rows, size, out, frame.adds);
}

Type infer_to_batched(std::span<const Type> in, const Attributes&) {
  Type out = dense("to_batched", in[0]);
  out.batched = true;
  return out;
}

template <class T>
void to_batched_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t size = s.numbers[0];
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  for (std::int64_t row = 0; row < frame.rows; ++row) out = std::copy_n(in, size, out);
}

}  // namespace

std::vector<Op> batch_ops() {
  Op sum;
  sum.name = "batch_sum";
  sum.doc = "Sum over the samples of a batch, and over leading axes of each.";
  sum.attributes = {"leading"};
  sum.batching = Batching::reduces;
  sum.simplify = simplify_batch_sum;
  sum.infer = infer_batch_sum;
  sum.linearity = Linearity::jointly;
  sum.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                   std::span<NodeId> cotangents) {
    const Shape shape = e.type(node.inputs[0]).shape;
    const NodeId spread =
        e.emit("broadcast_to", {cotangent}, Attributes({shape.begin(), shape.end()}));
    cotangents[0] = e.emit("to_batched", {spread});
  };
  sum.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = {c.out.size(), c.in[0].shape.product(0, leading_of(c.attributes))};
    s.run = c.out.dtype == DType::float32 ? batch_sum_kernel<float> : batch_sum_kernel<double>;
    s.starts_sums = true;
  };

  Op spread;
  spread.name = "to_batched";
  spread.doc = "The same value for every sample of a batch.";
  spread.batching = Batching::spreads;
  spread.derived = true;
  spread.simplify = [](Emitter& e, std::span<const NodeId> inputs, const Attributes&) {
    return e.type(inputs[0]).batched ? inputs[0] : kNone;
  };
  spread.infer = infer_to_batched;
  spread.linearity = Linearity::jointly;
  spread.reverse = [](Emitter&, const NodeView&, NodeId cotangent, std::span<NodeId> cotangents) {
    cotangents[0] = cotangent;
  };
  spread.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = {c.in[0].size()};
    s.run = c.out.dtype == DType::float32 ? to_batched_kernel<float> : to_batched_kernel<double>;
  };
  return {sum, spread};
}

}  // namespace buropt
