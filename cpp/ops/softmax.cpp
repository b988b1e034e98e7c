// softmax, log_softmax and logsumexp over the last axis.
#include "math/elementary.h"
#include "ops/exponential_sums.h"
#include "ops/families.h"
#include "ops/rows.h"

namespace buropt {
namespace {

// ---- kernels

template <class T>
void softmax_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> x(s, frame, 0, n);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    const auto sums = exponential_sums<false>(
        GroupRows<T>(x, first, count), count, n,
        [&](int r, auto at, auto e, auto) { at.store(out + (first + r) * n, e); });
    // An infinite row has no softmax, not even where it is 0.
    const Mask<T> finite = sums.max - sums.max == Pack<T>(T(0));
    const RowValues<T> scale(select(finite, T(1) / (sums.ties + sums.rest), Pack<T>(kNaN<T>)));
    for (int r = 0; r < count; ++r) {
      T* row = out + (first + r) * n;
      for_each_columns<T>(n, [&](auto at) { at.store(row, at.load(row) * scale[r]); });
    }
  });
}

template <class T>
void log_softmax_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> x(s, frame, 0, n);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    const auto sums = exponential_sums<true>(GroupRows<T>(x, first, count), count, n, NoStore());
    const RowValues<T> max(sums.max);
    const RowValues<T> log_sum(log_of_sum(sums));
    for (int r = 0; r < count; ++r) {
      const T* from = x[first + r];
      T* row = out + (first + r) * n;
      for_each_columns<T>(n,
                          [&](auto at) { at.store(row, (at.load(from) - max[r]) - log_sum[r]); });
    }
  });
}

template <class T>
void logsumexp_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> x(s, frame, 0, n);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    const auto sums = exponential_sums<true>(GroupRows<T>(x, first, count), count, n, NoStore());
    (sums.max + log_of_sum(sums)).store_n(out + first, count);
  });
}

/// cotangent times softmax(x); where x has infinities, +inf share it and -inf get none.
template <class T>
void logsumexp_vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> cotangent(s, frame, 0, 1);
  const OperandRows<T> x(s, frame, 1, n);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    const auto sums = exponential_sums<false>(
        GroupRows<T>(x, first, count), count, n, [&](int r, auto at, auto e, auto tie) {
          at.store(out + (first + r) * n, select(tie, Pack<T>(T(1)), e));
        });
    const Pack<T> weight = T(1) / (sums.ties + sums.rest);
    const RowValues<T> scale(select(sums.max == Pack<T>(-kInfinity<T>), Pack<T>(T(0)), weight));
    for (int r = 0; r < count; ++r) {
      const T ct = *cotangent[first + r];
      T* row = out + (first + r) * n;
      const T factor = ct * scale[r];
      for_each_columns<T>(n, [&](auto at) { at.store(row, at.load(row) * factor); });
    }
  });
}

/// out = value(cotangent, y, total) with the total of term(cotangent, y) over the row.
template <class T, class Term, class Value>
BUROPT_INLINE void pull_rows(const Instruction& s, const Frame& frame, Term term,
                             Value value) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> cotangent(s, frame, 0, n);
  const OperandRows<T> y(s, frame, 1, n);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    RowGroup<T> group(T(0));
    for (int r = 0; r < count; ++r) {
      const T* ct = cotangent[first + r];
      const T* other = y[first + r];
      Pack<T> sum(T(0));
      for_each_columns<T>(n, [&](auto at) { sum += at.within(term(at.load(ct), at.load(other))); });
      group[r] = sum;
    }
    const RowValues<T> total(group.folded(Plus()));
    for (int r = 0; r < count; ++r) {
      const T* ct = cotangent[first + r];
      const T* other = y[first + r];
      T* row = out + (first + r) * n;
      for_each_columns<T>(
          n, [&](auto at) { at.store(row, value(at.load(ct), at.load(other), total[r])); });
    }
  });
}

template <class T>
void softmax_vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  pull_rows<T>(
      s, frame, [](Pack<T> ct, Pack<T> y) { return ct * y; },
      [](Pack<T> ct, Pack<T> y, T total) { return y * (ct - total); });
}

template <class T>
void log_softmax_vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  pull_rows<T>(
      s, frame, [](Pack<T> ct, Pack<T>) { return ct; },
      [](Pack<T> ct, Pack<T> y, T total) { return ct - exp(y) * total; });
}

// ---- records

template <Kernel f32, Kernel f64>
void lower(const LowerContext& c, Instruction& s) {
  s.numbers = row_numbers(c.in, c.in.back().shape);
  s.run = c.out.dtype == DType::float32 ? f32 : f64;
}

/// Of a primitive whose result has its operand's shape.
template <Kernel f32, Kernel f64>
Op rows_op(std::string_view name, std::string_view doc) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.lower = lower<f32, f64>;
  return op;
}

Op softmax_op() {
  Op op = rows_op<softmax_kernel<float>, softmax_kernel<double>>(
      "softmax", "exp(x) / sum(exp(x)) over the last axis.");
  op.infer = [](std::span<const Type> in, const Attributes&) { return infer_rows("softmax", in); };
  op.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) {
    cotangents[0] =
        without_dead_rows(e, node, cotangent, e.emit("softmax_vjp", {cotangent, node.id}));
  };
  // The Jacobian is symmetric.
  op.forward = [](Emitter& e, const NodeView& node, std::span<const NodeId> tangents) {
    return e.emit("softmax_vjp", {tangents[0], node.id});
  };
  return op;
}

Op softmax_vjp_op() {
  Op op = rows_op<softmax_vjp_kernel<float>, softmax_vjp_kernel<double>>(
      "softmax_vjp", "Cotangent through softmax, from its value.");
  op.arity = 2;
  op.derived = true;
  op.infer = [](std::span<const Type> in, const Attributes&) {
    return infer_rows("softmax_vjp", in);
  };
  op.expand = [](Emitter& e, std::span<const NodeId> inputs, const Attributes&) {
    const Symbol ct(e, inputs[0]);
    const Symbol y(e, inputs[1]);
    return (y * (ct - sum_last(ct * y))).node();
  };
  return op;
}

Op log_softmax_op() {
  Op op = rows_op<log_softmax_kernel<float>, log_softmax_kernel<double>>(
      "log_softmax", "x - log(sum(exp(x))) over the last axis.");
  op.infer = [](std::span<const Type> in, const Attributes&) {
    return infer_rows("log_softmax", in);
  };
  op.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) {
    cotangents[0] =
        without_dead_rows(e, node, cotangent, e.emit("log_softmax_vjp", {cotangent, node.id}));
  };
  op.forward = [](Emitter& e, const NodeView& node, std::span<const NodeId> tangents) {
    const Symbol t(e, tangents[0]);
    return (t - sum_last(exp(Symbol(e, node.id)) * t)).node();
  };
  return op;
}

Op log_softmax_vjp_op() {
  Op op = rows_op<log_softmax_vjp_kernel<float>, log_softmax_vjp_kernel<double>>(
      "log_softmax_vjp", "Cotangent through log_softmax, from its value.");
  op.arity = 2;
  op.derived = true;
  op.infer = [](std::span<const Type> in, const Attributes&) {
    return infer_rows("log_softmax_vjp", in);
  };
  op.expand = [](Emitter& e, std::span<const NodeId> inputs, const Attributes&) {
    const Symbol ct(e, inputs[0]);
    return (ct - exp(Symbol(e, inputs[1])) * sum_last(ct)).node();
  };
  return op;
}

Op logsumexp_op() {
  Op op = rows_op<logsumexp_kernel<float>, logsumexp_kernel<double>>(
      "logsumexp", "log(sum(exp(x))) over the last axis, which goes.");
  op.infer = [](std::span<const Type> in, const Attributes&) {
    Type out = infer_rows("logsumexp", in);
    out.shape = without_last_axis(out.shape);
    return out;
  };
  op.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) {
    cotangents[0] =
        without_dead_rows(e, node, cotangent, e.emit("logsumexp_vjp", {cotangent, node.inputs[0]}));
  };
  op.forward = [](Emitter& e, const NodeView& node, std::span<const NodeId> tangents) {
    const NodeId one = e.constant(1, e.type(node.id).dtype);
    const Shape& shape = e.type(node.id).shape;
    const NodeId ones = e.emit("broadcast_to", {one}, Attributes({shape.begin(), shape.end()}));
    const Symbol weights(e, e.emit("logsumexp_vjp", {ones, node.inputs[0]}));
    return drop_last_axis(sum_last(weights * Symbol(e, tangents[0])));
  };
  return op;
}

Op logsumexp_vjp_op() {
  Op op = rows_op<logsumexp_vjp_kernel<float>, logsumexp_vjp_kernel<double>>(
      "logsumexp_vjp", "Cotangent through logsumexp, from its operand.");
  op.arity = 2;
  op.derived = true;
  op.infer = [](std::span<const Type> in, const Attributes&) {
    Type out = infer_rows("logsumexp_vjp", in.subspan(1));
    if (!(dense("logsumexp_vjp", in[0]).shape == without_last_axis(out.shape))) {
      raise(ErrorKind::value,
            "buropt.logsumexp_vjp: rows of shape %s have no cotangent of shape %s",
            out.shape.str().c_str(), in[0].shape.str().c_str());
    }
    out.batched = out.batched || in[0].batched;
    return out;
  };
  op.expand = [](Emitter& e, std::span<const NodeId> inputs, const Attributes&) {
    const Symbol x(e, inputs[1]);
    const Symbol y = with_last_axis(Symbol(e, e.emit("logsumexp", {inputs[1]})));
    const Symbol softmax(e, e.emit("softmax", {inputs[1]}));
    const Symbol ties = x == y;
    const Symbol infinite = select(y < Symbol(0), Symbol(0), ties / sum_last(ties));
    const Symbol weights = select(y - y == Symbol(0), softmax, infinite);
    return (with_last_axis(Symbol(e, inputs[0])) * weights).node();
  };
  return op;
}

}  // namespace

std::vector<Op> softmax_ops() {
  return {softmax_op(),         softmax_vjp_op(), log_softmax_op(),
          log_softmax_vjp_op(), logsumexp_op(),   logsumexp_vjp_op()};
}

}  // namespace buropt
