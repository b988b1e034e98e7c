// layer_norm {"eps"} and rms_norm {"eps"} over the last axis, without scale and shift.
//
//   layer_norm  y = (x - mean(x)) / sqrt(var(x) + eps)
//   rms_norm    y = x / sqrt(mean(x^2) + eps)
//
// eps is a number: the bits of a double. Cotangents are computed from x again: a row costs little
// while it lies in registers, and neither its mean nor its scale has to be kept.
#include "ops/families.h"
#include "ops/row_moments.h"

namespace buropt {
namespace {

template <bool centred, class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> rows(s, frame, 0, n);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    const GroupRows<T> x(rows, first, count);
    const Moments<T> of = moments<centred>(x, n, epsilon<T>(s));
    const RowValues<T> mean(of.mean);
    const RowValues<T> scale(of.scale);
    for_each_columns<T>(n, [&](auto at) {
      for (int r = 0; r < count; ++r) {
        at.store(out + (first + r) * n, (at.load(x[r]) - mean[r]) * scale[r]);
      }
    });
  });
}

template <bool centred, class T>
void vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> cotangents(s, frame, 0, n);
  const OperandRows<T> rows(s, frame, 1, n);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    const GroupRows<T> ct(cotangents, first, count);
    const GroupRows<T> x(rows, first, count);
    const Moments<T> of = moments<centred>(x, n, epsilon<T>(s));
    pull_normalized<centred>(
        n, count, RowValues<T>(of.mean), RowValues<T>(of.scale),
        [&](int r, auto at) { return at.load(ct[r]); },
        [&](int r, auto at) { return at.load(x[r]); },
        [&](int r) { return out + (first + r) * n; });
  });
}

template <bool centred>
constexpr std::string_view kName = centred ? "layer_norm" : "rms_norm";
template <bool centred>
constexpr std::string_view kVjpName = centred ? "layer_norm_vjp" : "rms_norm_vjp";

template <bool centred>
NodeId expand_vjp(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const Symbol ct(e, inputs[0]);
  const Symbol x(e, inputs[1]);
  const Symbol n(last_extent(x));
  const Symbol eps(std::bit_cast<double>(attributes[0].at(0)));
  const Symbol d = centred ? x - sum_last(x) / n : x;
  const Symbol scale = Symbol(1) / sqrt(sum_last(d * d) / n + eps);
  const Symbol y = d * scale;
  const Symbol pulled = centred ? ct - sum_last(ct) / n : ct;
  return (scale * (pulled - y * (sum_last(ct * y) / n))).node();
}

template <bool centred>
std::vector<Op> ops(std::string_view doc) {
  Op op;
  op.name = kName<centred>;
  op.doc = doc;
  op.attributes = {"eps"};
  op.infer = [](std::span<const Type> in, const Attributes& attributes) {
    return infer_normalized(kName<centred>, in, attributes);
  };
  op.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) {
    const Attributes attributes = node.attributes;
    const NodeId pulled = e.emit(kVjpName<centred>, {cotangent, node.inputs[0]}, attributes);
    cotangents[0] = without_dead_rows(e, node, cotangent, pulled);
  };
  // The Jacobian is symmetric.
  op.forward = [](Emitter& e, const NodeView& node, std::span<const NodeId> tangents) {
    const Attributes attributes = node.attributes;
    return e.emit(kVjpName<centred>, {tangents[0], node.inputs[0]}, attributes);
  };
  op.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = row_numbers(c.in, c.out.shape);
    append_epsilon(c.attributes, s);
    s.run = c.out.dtype == DType::float32 ? kernel<centred, float> : kernel<centred, double>;
  };

  Op vjp;
  vjp.name = kVjpName<centred>;
  vjp.doc = "Cotangent through the normalization, from its operand.";
  vjp.arity = 2;
  vjp.attributes = {"eps"};
  vjp.derived = true;
  vjp.infer = [](std::span<const Type> in, const Attributes& attributes) {
    return infer_normalized(kVjpName<centred>, in, attributes);
  };
  vjp.expand = expand_vjp<centred>;
  vjp.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = row_numbers(c.in, c.out.shape);
    append_epsilon(c.attributes, s);
    s.run =
        c.out.dtype == DType::float32 ? vjp_kernel<centred, float> : vjp_kernel<centred, double>;
  };
  return {op, vjp};
}

}  // namespace

std::vector<Op> normalization_ops() {
  std::vector<Op> all = ops<true>("(x - mean) / sqrt(variance + eps) over the last axis.");
  for (const Op& op : ops<false>("x / sqrt(mean(x^2) + eps) over the last axis.")) {
    all.push_back(op);
  }
  return all;
}

}  // namespace buropt
