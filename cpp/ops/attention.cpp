// attention {"n_heads"}, {"causal"} on packed rows: qkv (T, 3 C) -> (T, C).
//
// Row t holds q, k and v of position t, each of C = n_heads * width columns, head after head. The
// cotangent of qkv is packed alike, and computed from qkv again, unless the planner has the weights
// of short rows kept (graph/remember.h).
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
  if (attributes[1].size() != 1) raise(ErrorKind::value, "buropt.attention: causal is not given");
  if (in[0].csr || out.shape.rank() != 2 || heads < 1 || heads > out.shape[1] ||
      out.shape[1] % (3 * heads) != 0) {
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

/// Each product of a query with the keys it sees, and each exponential.
template <bool vjp>
std::int64_t work(std::span<const Type> in, const Type&, const Attributes& attributes) {
  const AttentionShape a = shape_of(in.back().shape, attributes);
  const std::int64_t pairs = a.causal ? a.length * (a.length + 1) / 2 : a.length * a.length;
  return a.heads * pairs * ((vjp ? 5 : 2) * a.width + 4);
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

// ---- formulas

std::vector<std::int64_t> extents(const Shape& shape) { return {shape.begin(), shape.end()}; }

Symbol reshape(Symbol x, const Shape& shape) {
  Emitter& e = *x.emitter();
  return {e, e.emit("reshape", {x.node()}, Attributes(extents(shape)))};
}
Symbol transpose(Symbol x, std::vector<std::int64_t> axes) {
  Emitter& e = *x.emitter();
  return {e, e.emit("transpose", {x.node()}, Attributes(std::move(axes)))};
}
Symbol product(Symbol a, Symbol b, bool transpose_a, bool transpose_b) {
  Emitter& e = *a.emitter();
  return {e, e.emit("matmul", {a.node(), b.node()}, Attributes({transpose_a}, {transpose_b}))};
}
Symbol join(std::span<const NodeId> parts, Emitter& e, std::int64_t axis) {
  return {e, e.emit(find_op("concatenate"), parts, Attributes({axis}))};
}

/// (T, T) with one number where position i sees position j, and another elsewhere.
Symbol visibility(Emitter& e, const AttentionShape& a, DType dtype, double seen, double hidden) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < a.length; ++i) {
    for (std::int64_t j = 0; j < a.length; ++j) values.push_back(j < a.keys(i) ? seen : hidden);
  }
  return {e, e.constant(values, Shape{a.length, a.length}, dtype)};
}

/// q, k or v of all heads as a stack (heads, T, width).
Symbol heads_of(Symbol qkv, const AttentionShape& a, std::int64_t part) {
  Emitter& e = *qkv.emitter();
  const NodeId columns = e.emit(
      "slice", {qkv.node()}, Attributes({0, part * a.columns()}, {a.length, a.columns()}, {1, 1}));
  return transpose(reshape(Symbol(e, columns), {a.length, a.heads, a.width}), {1, 0, 2});
}

NodeId expand_vjp(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const Type type = e.type(inputs[1]);
  const AttentionShape a = shape_of(type.shape, attributes);
  const Symbol scale(1 / std::sqrt(static_cast<double>(a.width)));
  const Symbol ct = heads_of(Symbol(e, inputs[0]), a, 0);
  const Symbol q = heads_of(Symbol(e, inputs[1]), a, 0);
  const Symbol k = heads_of(Symbol(e, inputs[1]), a, 1);
  const Symbol v = heads_of(Symbol(e, inputs[1]), a, 2);
  Symbol scores = product(q, k, false, true) * scale;
  if (a.causal) {
    scores = scores + visibility(e, a, type.dtype, 0, -std::numeric_limits<double>::infinity());
  }
  const Symbol p(e, e.emit("softmax", {scores.node()}));
  const Symbol dp = product(ct, v, false, true);
  const Symbol ds = p * (dp - sum_last(p * dp)) * scale;
  std::vector<NodeId> parts;
  for (const Symbol stack :
       {product(ds, k, false, false), product(ds, q, true, false), product(p, ct, true, false)}) {
    parts.push_back(reshape(transpose(stack, {1, 0, 2}), {a.length, a.columns()}).node());
  }
  return join(parts, e, 1).node();
}

/// qkv with 0 in place of what is not finite in queries without cotangents, and in keys and values
/// that only such queries see: in the branch of a `where`, they must not reach the others.
NodeId without_dead_positions(Emitter& e, NodeId cotangent, NodeId qkv,
                              const Attributes& attributes) {
  const Type type = e.type(qkv);
  const AttentionShape a = shape_of(type.shape, attributes);
  const Symbol zero(0.0);
  const Symbol size = sum_last(abs(Symbol(e, cotangent)));
  const Symbol seen_by = product(visibility(e, a, type.dtype, 1, 0), size, true, false);
  const auto spread = [&](Symbol x, std::int64_t columns) {
    return e.emit("broadcast_to", {x.node()}, Attributes({a.length, columns}));
  };
  const std::array<NodeId, 2> parts{spread(size == zero, a.columns()),
                                    spread(seen_by == zero, 2 * a.columns())};
  const Symbol dead = join(parts, e, 1);
  const Symbol x(e, qkv);
  return select(dead & (x - x != zero), zero, x).node();
}

void reverse(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  const Attributes attributes = node.attributes;
  NodeId qkv = node.inputs[0];
  if (node.guarded) qkv = without_dead_positions(e, cotangent, qkv, attributes);
  cotangents[0] = e.emit("attention_vjp", {cotangent, qkv}, attributes);
}

}  // namespace

std::vector<Op> attention_ops() {
  Op op;
  op.name = "attention";
  op.doc = "softmax(Q K' / sqrt(width)) V for every head of packed rows (q, k, v).";
  op.attributes = {"n_heads", "causal"};
  op.infer = infer;
  op.reverse = reverse;
  op.work = work<false>;
  op.lower = lower<false>;

  Op vjp;
  vjp.name = "attention_vjp";
  vjp.doc = "Cotangent through attention to the packed rows.";
  vjp.arity = 2;
  vjp.attributes = {"n_heads", "causal"};
  vjp.derived = true;
  vjp.infer = infer_vjp;
  vjp.expand = expand_vjp;
  vjp.work = work<true>;
  vjp.lower = lower<true>;
  return {op, vjp};
}

}  // namespace buropt
