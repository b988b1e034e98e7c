// softmax_cross_entropy of logits (..., C) and labels (...), and one_hot {"n"}.
//
// A label is a whole number held in the graph's float dtype. One that is not in 0..C-1 gives NaN.
#include "ops/exponential_sums.h"
#include "ops/families.h"

namespace buropt {
namespace {

/// The label's column, or -1.
template <class T>
BUROPT_INLINE std::int64_t column_of(T label, std::int64_t n) noexcept {
  if (!(label >= T(0)) || !(label < static_cast<T>(n))) return -1;
  const auto column = static_cast<std::int64_t>(label);
  return static_cast<T>(column) == label ? column : -1;
}

/// Raises unless the labels have the logits' shape without its last axis.
Type check_labels(std::string_view name, const Type& logits, const Type& labels) {
  const std::array<Type, 1> rows{logits};
  Type out = infer_rows(name, rows);
  if (labels.csr || !(labels.shape == without_last_axis(out.shape))) {
    raise(ErrorKind::value,
          "buropt.%.*s: logits of shape %s need labels of shape %s, one for each row, got %s",
          static_cast<int>(name.size()), name.data(), out.shape.str().c_str(),
          without_last_axis(out.shape).str().c_str(), labels.shape.str().c_str());
  }
  out.batched = out.batched || labels.batched;
  return out;
}

// ---- softmax_cross_entropy: operands logits, labels

template <class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> logits(s, frame, 0, n);
  const OperandRows<T> labels(s, frame, 1, 1);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    const auto sums =
        exponential_sums<true>(GroupRows<T>(logits, first, count), count, n, NoStore());
    const RowValues<T> max(sums.max);
    const RowValues<T> log_sum(log_of_sum(sums));
    for (int r = 0; r < count; ++r) {
      const std::int64_t column = column_of(*labels[first + r], n);
      out[first + r] = column < 0 ? kNaN<T> : (max[r] - logits[first + r][column]) + log_sum[r];
    }
  });
}

Type infer(std::span<const Type> in, const Attributes&) {
  Type out = check_labels("softmax_cross_entropy", in[0], in[1]);
  out.shape = without_last_axis(out.shape);
  return out;
}

void lower(const LowerContext& c, Instruction& s) {
  s.numbers = row_numbers(c.in, c.in[0].shape);
  s.run = c.out.dtype == DType::float32 ? kernel<float> : kernel<double>;
}

// ---- softmax_cross_entropy_vjp: operands cotangent (...), logits, labels

/// cotangent times (softmax - one_hot).
template <class T>
void vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> cotangents(s, frame, 0, 1);
  const OperandRows<T> logits(s, frame, 1, n);
  const OperandRows<T> labels(s, frame, 2, 1);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    const GroupRows<T> x(logits, first, count);
    std::array<std::int64_t, Pack<T>::size> columns;
    for (std::size_t r = 0; r < static_cast<std::size_t>(count); ++r) {
      columns[r] = column_of(*labels[first + static_cast<std::int64_t>(r)], n);
    }
    // softmax - 1 is minus the sum of the others, to its last digits when the label dominates.
    RowGroup<T> others(T(0));
    const auto sums = exponential_sums<false>(x, count, n, [&](int r, auto at, auto e, auto tie) {
      using Lane = typename Pack<T>::Lane;
      const std::int64_t label = columns[static_cast<std::size_t>(r)] - at.i;
      const Mask<T> is_label = lane_numbers<T>() == Pack<Lane>(static_cast<Lane>(label));
      const Pack<T> zero(T(0));
      at.store(out + (first + r) * n, select(is_label, zero, e));
      others[r] += at.within(select(is_label, zero, select(tie, Pack<T>(T(1)), e)));
    });
    const Pack<T> weight = T(1) / (sums.ties + sums.rest);
    const RowValues<T> scale(weight);
    const RowValues<T> max(sums.max);
    const RowValues<T> of_others(others.folded(Plus()) * weight);
    for (int r = 0; r < count; ++r) {
      const T ct = *cotangents[first + r];
      const std::int64_t column = columns[static_cast<std::size_t>(r)];
      T* row = out + (first + r) * n;
      const T factor = column < 0 ? kNaN<T> : ct * scale[r];
      for_each_columns<T>(n, [&](auto at) { at.store(row, at.load(row) * factor); });
      if (column < 0) continue;
      // Of an infinite label there is no softmax.
      const T below = x[r][column] - max[r];
      row[column] = below != below ? kNaN<T> : -ct * of_others[r];
    }
  });
}

Op vjp_op() {
  Op op;
  op.name = "softmax_cross_entropy_vjp";
  op.doc = "Cotangent through softmax_cross_entropy to the logits.";
  op.arity = 3;
  op.derived = true;
  op.infer = [](std::span<const Type> in, const Attributes&) {
    Type out = check_labels("softmax_cross_entropy_vjp", in[1], in[2]);
    BUROPT_ASSERT(in[0].shape == in[2].shape);
    out.batched = out.batched || in[0].batched;
    return out;
  };
  op.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = row_numbers(c.in, c.out.shape);
    s.run = c.out.dtype == DType::float32 ? vjp_kernel<float> : vjp_kernel<double>;
  };
  op.expand = [](Emitter& e, std::span<const NodeId> inputs, const Attributes&) {
    const Shape& shape = e.type(inputs[1]).shape;
    const Attributes n({shape[shape.rank() - 1]});
    const Symbol one_hot(e, e.emit("one_hot", {inputs[2]}, n));
    const Symbol softmax(e, e.emit("softmax", {inputs[1]}));
    return (with_last_axis(Symbol(e, inputs[0])) * (softmax - one_hot)).node();
  };
  return op;
}

// ---- one_hot {"n"}

template <class T>
void one_hot_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const T* labels = buffer_as<const T>(frame, s.in[0]);
  T* row = buffer_as<T>(frame, s.out);
  for (std::int64_t r = 0; r < s.numbers[0] * s.rows(frame); ++r, row += n) {
    const std::int64_t column = column_of(labels[r], n);
    std::fill_n(row, n, column < 0 ? kNaN<T> : T(0));
    if (column >= 0) row[column] = T(1);
  }
}

Op one_hot_op() {
  Op op;
  op.name = "one_hot";
  op.doc = "Rows of zeros with a one at the label.";
  op.attributes = {"n"};
  op.infer = [](std::span<const Type> in, const Attributes& attributes) {
    Type out = in[0];
    if (in[0].csr) raise(ErrorKind::type, "buropt.one_hot: labels cannot be a sparse row");
    out.shape.push_back(attributes[0].at(0));
    return out;
  };
  op.reverse = [](Emitter&, const NodeView&, NodeId, std::span<NodeId>) {};
  op.forward = [](Emitter&, const NodeView&, std::span<const NodeId>) { return kNone; };
  op.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = row_numbers(c.in, c.out.shape);
    s.run = c.out.dtype == DType::float32 ? one_hot_kernel<float> : one_hot_kernel<double>;
  };
  return op;
}

}  // namespace

std::vector<Op> cross_entropy_ops() {
  Op op;
  op.name = "softmax_cross_entropy";
  op.doc = "log(sum(exp(logits))) - logits[label] over the last axis.";
  op.arity = 2;
  op.infer = infer;
  op.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) {
    const NodeId pulled =
        e.emit("softmax_cross_entropy_vjp", {cotangent, node.inputs[0], node.inputs[1]});
    cotangents[0] = without_dead_rows(e, node, cotangent, pulled);
  };
  op.forward = [](Emitter& e, const NodeView& node, std::span<const NodeId> tangents) {
    if (tangents[0] == kNone) return kNone;
    const NodeId one = e.constant(1, e.type(node.id).dtype);
    const Shape& shape = e.type(node.id).shape;
    const NodeId ones = e.emit("broadcast_to", {one}, Attributes({shape.begin(), shape.end()}));
    const Symbol slopes(
        e, e.emit("softmax_cross_entropy_vjp", {ones, node.inputs[0], node.inputs[1]}));
    return drop_last_axis(sum_last(slopes * Symbol(e, tangents[0])));
  };
  op.lower = lower;
  return {op, vjp_op(), one_hot_op()};
}

}  // namespace buropt
