// layer_norm_affine {"eps"} over the last axis, with a weight and a bias for each column:
//
//   y = (x - mean(x)) / sqrt(var(x) + eps) * weight + bias
//
// eps is the bits of a double. The cotangents of x and weight share the mean and the scale of each
// row: layer_norm_moments. Where they are computed, the planner has the value use them too
// (layer_norm_affine_with_moments). The weight's cotangent is a sum over all rows, of a sample or
// of the whole batch.
#include "math/reduce.h"
#include "ops/axes.h"
#include "ops/families.h"
#include "ops/row_moments.h"

namespace buropt {
namespace {

constexpr std::string_view kName = "layer_norm_affine", kMoments = "layer_norm_moments",
                           kKnown = "layer_norm_affine_with_moments",
                           kVjp = "layer_norm_affine_vjp", kWeight = "layer_norm_weight_vjp",
                           kWeightSum = "layer_norm_weight_vjp_batch_sum";

Attributes eps_of(const Attributes& attributes) { return Attributes(attributes[0]); }

// ---- layer_norm_affine: operands x (..., n), weight (n,), bias (n,); and moments, if they are
// known

/// Means and scales of a group's rows.
template <class T>
struct RowMoments {
  RowValues<T> mean;
  RowValues<T> scale;

  BUROPT_INLINE explicit RowMoments(const Moments<T>& of) noexcept
      : mean(of.mean), scale(of.scale) {}
  /// From what moments_kernel wrote.
  BUROPT_INLINE explicit RowMoments(const GroupRows<T>& known) noexcept
      : mean([&](int r) { return known[r][0]; }), scale([&](int r) { return known[r][1]; }) {}
};

template <class T, bool known>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> rows(s, frame, 0, n);
  const T* weight = buffer_as<const T>(frame, s.in[1]);
  const T* bias = buffer_as<const T>(frame, s.in[2]);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    const GroupRows<T> x(rows, first, count);
    const RowMoments<T> of = [&] {
      if constexpr (known)
        return RowMoments<T>(GroupRows<T>(OperandRows<T>(s, frame, 3, 2), first, count));
      else
        return RowMoments<T>(moments<true>(x, n, epsilon<T>(s)));
    }();
    for_each_columns<T>(n, [&](auto at) {
      const Pack<T> w = at.load(weight);
      const Pack<T> b = at.load(bias);
      for (int r = 0; r < count; ++r) {
        const Pack<T> y = (at.load(x[r]) - of.mean[r]) * of.scale[r];
        at.store(out + (first + r) * n, fma(y, w, b));
      }
    });
  });
}

/// The moments of rows x are an operand.
void check_moments(std::string_view name, const Shape& x, const Type& moments) {
  Shape expected = x;
  expected[x.rank() - 1] = 2;
  if (!(dense(name, moments).shape == expected)) {
    raise(ErrorKind::value, "buropt.%.*s: moments of rows of shape %s have shape %s, not %s",
          static_cast<int>(name.size()), name.data(), x.str().c_str(), expected.str().c_str(),
          moments.shape.str().c_str());
  }
}

Type infer(std::span<const Type> in, const Attributes& attributes) {
  const Type out = infer_normalized(kName, in.first(1), attributes);
  const Shape columns{out.shape[out.shape.rank() - 1]};
  if (!(dense(kName, in[1]).shape == columns) || !(dense(kName, in[2]).shape == columns)) {
    raise(ErrorKind::value,
          "buropt.layer_norm_affine: rows of shape %s need a weight and a bias of shape %s, got %s "
          "and %s",
          out.shape.str().c_str(), columns.str().c_str(), in[1].shape.str().c_str(),
          in[2].shape.str().c_str());
  }
  return out;
}

Symbol normalized(Emitter& e, NodeId x, const Attributes& attributes) {
  return {e, e.emit("layer_norm", {x}, attributes)};
}

/// A weight or bias that differs from sample to sample multiplies as any other array.
NodeId simplify(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  if (!e.type(inputs[1]).batched && !e.type(inputs[2]).batched) return kNone;
  infer(std::array{e.type(inputs[0]), e.type(inputs[1]), e.type(inputs[2])}, attributes);
  return (normalized(e, inputs[0], attributes) * Symbol(e, inputs[1]) + Symbol(e, inputs[2]))
      .node();
}

Symbol sum_rows_of(Symbol x) {
  Emitter& e = *x.emitter();
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis + 1 < e.type(x.node()).shape.rank(); ++axis) axes.push_back(axis);
  return {e, e.emit("sum", {x.node()}, Attributes(axes, {0}))};
}

void reverse(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  const Attributes eps = eps_of(node.attributes);
  const NodeId x = node.inputs[0];
  const NodeId weight = node.inputs[1];
  const Symbol ct(e, cotangent);
  cotangents[2] = sum_rows_of(ct).node();
  if (node.guarded) {
    // Step by step: a product with a cotangent of 0 is 0 whatever the other factor is.
    const NodeId dead = (ct == Symbol(0)).node();
    const NodeId scaled = without_nan(e, dead, (ct * Symbol(e, weight)).node());
    const NodeId pulled = e.emit("layer_norm_vjp", {scaled, x}, eps);
    cotangents[0] = without_dead_rows(e, node, scaled, pulled);
    const NodeId products = without_nan(e, dead, (ct * normalized(e, x, eps)).node());
    cotangents[1] = sum_rows_of(Symbol(e, products)).node();
    return;
  }
  const NodeId moments = e.emit(kMoments, {x}, eps);
  cotangents[0] = e.emit(kVjp, {cotangent, x, moments, weight}, eps);
  cotangents[1] = e.emit(kWeight, {cotangent, x, moments}, eps);
}

NodeId forward(Emitter& e, const NodeView& node, std::span<const NodeId> tangents) {
  const Attributes eps = eps_of(node.attributes);
  const NodeId x = node.inputs[0];
  const NodeId weight = node.inputs[1];
  std::vector<Symbol> terms;
  if (tangents[0] != kNone) {
    const Symbol pulled(e, e.emit("layer_norm_vjp", {tangents[0], x}, eps));
    terms.push_back(pulled * Symbol(e, weight));
  }
  if (tangents[1] != kNone) terms.push_back(normalized(e, x, eps) * Symbol(e, tangents[1]));
  if (tangents[2] != kNone) {
    const Shape& shape = e.type(node.id).shape;
    terms.emplace_back(
        e, e.emit("broadcast_to", {tangents[2]}, Attributes({shape.begin(), shape.end()})));
  }
  if (terms.empty()) return kNone;
  Symbol total = terms[0];
  for (std::size_t k = 1; k < terms.size(); ++k) total = total + terms[k];
  return total.node();
}

// ---- layer_norm_moments: x (..., n) to (..., 2), the mean and the scale of each row

template <class T>
void moments_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> rows(s, frame, 0, n);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    const RowMoments<T> of(moments<true>(GroupRows<T>(rows, first, count), n, epsilon<T>(s)));
    for (int r = 0; r < count; ++r) {
      out[2 * (first + r)] = of.mean[r];
      out[2 * (first + r) + 1] = of.scale[r];
    }
  });
}

NodeId expand_moments(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const Symbol x(e, inputs[0]);
  const Symbol n(last_extent(x));
  const Symbol eps(std::bit_cast<double>(attributes[0].at(0)));
  const Symbol mean = sum_last(x) / n;
  const Symbol d = x - mean;
  const Symbol scale = Symbol(1) / sqrt(sum_last(d * d) / n + eps);
  const std::array parts{mean.node(), scale.node()};
  const std::int64_t axis = e.type(inputs[0]).shape.rank() - 1;
  return e.emit(find_op("concatenate"), parts, Attributes({axis}));
}

Type infer_moments(std::span<const Type> in, const Attributes& attributes) {
  Type out = infer_normalized(kMoments, in, attributes);
  out.shape[out.shape.rank() - 1] = 2;
  return out;
}

// ---- layer_norm_affine_vjp: operands cotangent, x, moments, weight

template <class T>
void vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> cotangents(s, frame, 0, n);
  const OperandRows<T> rows(s, frame, 1, n);
  const OperandRows<T> known(s, frame, 2, 2);
  const T* weight = buffer_as<const T>(frame, s.in[3]);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    const GroupRows<T> ct(cotangents, first, count);
    const GroupRows<T> x(rows, first, count);
    const RowMoments<T> of(GroupRows<T>(known, first, count));
    pull_normalized<true>(
        n, count, of.mean, of.scale,
        // Rounded, so that a mean of equal products is one of them.
        [&](int r, auto at) { return rounded_product(at.load(ct[r]), at.load(weight)); },
        [&](int r, auto at) { return at.load(x[r]); },
        [&](int r) { return out + (first + r) * n; });
  });
}

Type infer_vjp(std::span<const Type> in, const Attributes& attributes) {
  Type out = infer_normalized(kVjp, in.first(2), attributes);
  check_moments(kVjp, out.shape, in[2]);
  const Shape columns{out.shape[out.shape.rank() - 1]};
  if (!(dense(kVjp, in[3]).shape == columns)) {
    raise(ErrorKind::value, "buropt.%.*s: rows of shape %s need a weight of shape %s, got %s",
          static_cast<int>(kVjp.size()), kVjp.data(), out.shape.str().c_str(),
          columns.str().c_str(), in[3].shape.str().c_str());
  }
  out.batched = out.batched || in[2].batched;
  return out;
}

NodeId expand_vjp(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const Symbol scaled = Symbol(e, inputs[0]) * Symbol(e, inputs[3]);
  static const OpId vjp = find_op("layer_norm_vjp");
  return op(vjp).expand(e, std::array{scaled.node(), inputs[1]}, attributes);
}

// ---- layer_norm_weight_vjp and layer_norm_weight_vjp_batch_sum: operands cotangent, x, moments

/// Sums over the rows of each sample, or of the whole tile.
template <class T, bool sums>
void weight_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const std::int64_t samples = sums ? 1 : s.rows(frame);
  const std::int64_t per_sample = s.numbers[0] * (sums ? frame.rows : 1);
  const OperandRows<T> cotangents(s, frame, 0, n);
  const OperandRows<T> rows(s, frame, 1, n);
  const OperandRows<T> known(s, frame, 2, 2);
  T* out = buffer_as<T>(frame, s.out);
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    const std::int64_t first = sample * per_sample;
    sum_columns(per_sample, n, out + sample * n, sums && frame.adds,
                [&](auto lanes, std::int64_t r, std::int64_t j, auto sum) {
                  const T* of = known[first + r];
                  const auto d = load_lanes<T, lanes>(rows[first + r] + j) - of[0];
                  return multiply_add(load_lanes<T, lanes>(cotangents[first + r] + j), d * of[1],
                                      sum);
                });
  }
}

Type infer_weight(std::span<const Type> in, const Attributes& attributes) {
  Type out = infer_normalized(kWeight, in.first(2), attributes);
  check_moments(kWeight, out.shape, in[2]);
  out.shape = Shape{out.shape[out.shape.rank() - 1]};
  return out;
}

NodeId expand_weight(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  return sum_rows_of(Symbol(e, inputs[0]) * normalized(e, inputs[1], attributes)).node();
}

/// Where all operands have rows of their own for every sample.
NodeId sum_over_batch(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  for (const NodeId input : inputs) {
    if (!e.type(input).batched) return kNone;
  }
  return e.emit(find_op(kWeightSum), inputs, attributes);
}

// ---- records

template <Kernel f32, Kernel f64>
void lower(const LowerContext& c, Instruction& s) {
  s.numbers = row_numbers(c.in, c.in[0].shape);
  append_epsilon(c.attributes, s);
  s.run = c.out.dtype == DType::float32 ? f32 : f64;
}

}  // namespace

std::vector<Op> layer_norm_affine_ops() {
  Op op;
  op.name = kName;
  op.doc = "(x - mean) / sqrt(variance + eps) * weight + bias over the last axis.";
  op.arity = 3;
  op.attributes = {"eps"};
  op.simplify = simplify;
  op.infer = infer;
  op.reverse = reverse;
  op.forward = forward;
  op.lower = lower<kernel<float, false>, kernel<double, false>>;

  Op known;
  known.name = kKnown;
  known.doc = "layer_norm_affine of rows whose moments are the last operand.";
  known.arity = 4;
  known.attributes = {"eps"};
  known.derived = true;
  known.infer = [](std::span<const Type> in, const Attributes& attributes) {
    const Type out = infer(in, attributes);
    check_moments(kKnown, out.shape, in[3]);
    return out;
  };
  known.lower = lower<kernel<float, true>, kernel<double, true>>;

  Op moments;
  moments.name = kMoments;
  moments.doc = "Mean and 1 / sqrt(variance + eps) of each row.";
  moments.attributes = {"eps"};
  moments.derived = true;
  moments.infer = infer_moments;
  moments.expand = expand_moments;
  moments.lower = lower<moments_kernel<float>, moments_kernel<double>>;

  Op vjp;
  vjp.name = kVjp;
  vjp.doc = "Cotangent through layer_norm_affine to the rows.";
  vjp.arity = 4;
  vjp.attributes = {"eps"};
  vjp.derived = true;
  vjp.infer = infer_vjp;
  vjp.expand = expand_vjp;
  vjp.lower = lower<vjp_kernel<float>, vjp_kernel<double>>;

  Op weight;
  weight.name = kWeight;
  weight.doc = "Cotangent through layer_norm_affine to the weight.";
  weight.arity = 3;
  weight.attributes = {"eps"};
  weight.derived = true;
  weight.infer = infer_weight;
  weight.expand = expand_weight;
  weight.batch_sum = sum_over_batch;
  weight.lower = lower<weight_kernel<float, false>, weight_kernel<double, false>>;

  Op sum = weight;
  sum.name = kWeightSum;
  sum.doc = "The same, summed over the samples.";
  sum.batching = Batching::reduces;
  sum.batch_sum = nullptr;
  sum.infer = [](std::span<const Type> in, const Attributes& attributes) {
    Type out = infer_weight(in, attributes);
    out.batched = false;
    return out;
  };
  sum.expand = [](Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
    return e.emit("batch_sum", {expand_weight(e, inputs, attributes)});
  };
  sum.lower = [](const LowerContext& c, Instruction& s) {
    lower<weight_kernel<float, true>, weight_kernel<double, true>>(c, s);
    s.starts_sums = true;
  };
  return {op, known, moments, vjp, weight, sum};
}

}  // namespace buropt
