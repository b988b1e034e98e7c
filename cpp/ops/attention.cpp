// attention {"n_heads"}, {"causal"} on packed rows: qkv (T, 3 C) -> (T, C).
//
// Row t holds q, k and v of position t, each of C = n_heads * width columns, head after head. The
// cotangent of qkv is packed alike, and computed from qkv again: the weights cost less than keeping
// them.
#include "math/attention.h"

#include <limits>

#include "ops/families.h"
#include "ops/rows.h"

namespace buropt {
namespace {

AttentionShape shape_of(const Shape& qkv, const Attributes& attributes) {
  const std::int64_t heads = attributes[0].at(0);
  return {qkv[0], heads, qkv[1] / (3 * heads), attributes[1].at(0) != 0};
}

Type infer(std::span<const Type> in, const Attributes& attributes) {
  Type out = in[0];
  const std::int64_t heads = attributes[0].at(0);
  if (in[0].csr || out.shape.rank() != 2 || heads < 1 || out.shape[1] % (3 * heads) != 0) {
    raise(ErrorKind::value,
          "buropt.attention: qkv must have shape (T, 3 * C) with C a multiple of n_heads = %lld, "
          "got %s",
          static_cast<long long>(heads), out.shape.str().c_str());
  }
  out.shape[1] /= 3;
  return out;
}

Type infer_vjp(std::span<const Type> in, const Attributes& attributes) {
  const Type value = infer(in.subspan(1), attributes);
  if (!(in[0].shape == value.shape)) {
    raise(ErrorKind::value, "buropt.attention_vjp: the cotangent has shape %s, not %s",
          in[0].shape.str().c_str(), value.shape.str().c_str());
  }
  Type out = in[1];
  out.batched = in[0].batched || in[1].batched;
  return out;
}

// ---- kernels. numbers: T, heads, width, causal, and per operand the elements from one sample to
// the next (0 when unbatched).

AttentionShape shape_of(const Instruction& s) noexcept {
  return {s.numbers[0], s.numbers[1], s.numbers[2], s.numbers[3] != 0};
}

template <class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  attention(shape_of(s), s.rows(frame), buffer_as<const T>(frame, s.in[0]), s.numbers[4],
            buffer_as<T>(frame, s.out), reinterpret_cast<T*>(frame.scratch));
}

template <class T>
void vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  attention_vjp(shape_of(s), s.rows(frame), buffer_as<const T>(frame, s.in[0]), s.numbers[4],
                buffer_as<const T>(frame, s.in[1]), s.numbers[5], buffer_as<T>(frame, s.out),
                reinterpret_cast<T*>(frame.scratch));
}

template <bool vjp>
void lower(const LowerContext& c, Instruction& s) {
  const AttentionShape a = shape_of(c.in.back().shape, c.attributes);
  s.numbers = {a.length, a.heads, a.width, a.causal};
  for (const Type& type : c.in) s.numbers.push_back(type.batched ? type.size() : 0);
  dispatch(c.out.dtype, [&](auto zero) {
    using T = decltype(zero);
    s.run = vjp ? vjp_kernel<T> : kernel<T>;
    s.scratch_bytes = attention_scratch<T>(a, vjp) * static_cast<std::int64_t>(sizeof(T));
  });
}

// ---- the formula of the cotangents, head by head

Symbol columns(Symbol x, std::int64_t first, std::int64_t number) {
  Emitter& e = *x.emitter();
  const std::int64_t rows = e.type(x.node()).shape[0];
  return {e, e.emit("slice", {x.node()}, Attributes({0, first}, {rows, number}, {1, 1}))};
}

Symbol product(Symbol a, Symbol b, bool transpose_a, bool transpose_b) {
  Emitter& e = *a.emitter();
  return {e, e.emit("matmul", {a.node(), b.node()}, Attributes({transpose_a}, {transpose_b}))};
}

/// 0 where position i may see position j, -inf elsewhere.
Symbol causal_mask(Emitter& e, std::int64_t length, DType dtype) {
  std::vector<double> mask;
  for (std::int64_t i = 0; i < length; ++i) {
    for (std::int64_t j = 0; j < length; ++j) {
      mask.push_back(j <= i ? 0 : -std::numeric_limits<double>::infinity());
    }
  }
  return {e, e.constant(mask, Shape{length, length}, dtype)};
}

NodeId expand_vjp(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const Type type = e.type(inputs[1]);
  const AttentionShape a = shape_of(type.shape, attributes);
  const Symbol scale(1 / std::sqrt(static_cast<double>(a.width)));
  std::vector<NodeId> parts(static_cast<std::size_t>(3 * a.heads));
  for (std::int64_t head = 0; head < a.heads; ++head) {
    const auto part_of = [&](NodeId node, std::int64_t part) {
      return columns(Symbol(e, node), part * a.columns() + head * a.width, a.width);
    };
    const Symbol ct = part_of(inputs[0], 0);
    const Symbol q = part_of(inputs[1], 0);
    const Symbol k = part_of(inputs[1], 1);
    const Symbol v = part_of(inputs[1], 2);
    Symbol scores = product(q, k, false, true) * scale;
    if (a.causal) scores = scores + causal_mask(e, a.length, type.dtype);
    const Symbol p(e, e.emit("softmax", {scores.node()}));
    const Symbol dp = product(ct, v, false, true);
    const Symbol ds = p * (dp - sum_last(p * dp)) * scale;
    const std::array<Symbol, 3> results{product(ds, k, false, false), product(ds, q, true, false),
                                        product(p, ct, true, false)};
    for (std::size_t part = 0; part < 3; ++part) {
      parts[part * static_cast<std::size_t>(a.heads) + static_cast<std::size_t>(head)] =
          results[part].node();
    }
  }
  return e.emit(find_op("concatenate"), parts, Attributes({1}));
}

}  // namespace

std::vector<Op> attention_ops() {
  Op op;
  op.name = "attention";
  op.doc = "softmax(Q K' / sqrt(width)) V for every head of packed rows (q, k, v).";
  op.attributes = {"n_heads", "causal"};
  op.infer = infer;
  op.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) {
    const Attributes attributes = node.attributes;
    cotangents[0] = e.emit("attention_vjp", {cotangent, node.inputs[0]}, attributes);
  };
  op.lower = lower<false>;

  Op vjp;
  vjp.name = "attention_vjp";
  vjp.doc = "Cotangent through attention to the packed rows.";
  vjp.arity = 2;
  vjp.attributes = {"n_heads", "causal"};
  vjp.derived = true;
  vjp.infer = infer_vjp;
  vjp.expand = expand_vjp;
  vjp.lower = lower<true>;
  return {op, vjp};
}

}  // namespace buropt
