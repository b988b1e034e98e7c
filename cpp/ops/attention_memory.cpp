// attention_memory (qkv), attention_from_memory (memory) and attention_vjp_from_memory (cotangent,
// memory), {"n_heads"}, {"causal"}, {"shape"} of the result: attention and its cotangent, with the
// weights computed once for both.
//
// Only the planner makes them (graph/epilogue.h). The memory's layout is math/attention_memory.h's.
#include "math/attention_memory.h"

#include "ops/families.h"

namespace buropt {
namespace {

AttentionShape shape_of(const Attributes& attributes) {
  const std::int64_t heads = attributes[0].at(0);
  return {attributes[2].at(0), heads, attributes[2].at(1) / heads, attributes[1].at(0) != 0};
}

// Instruction::numbers: T, heads, width, causal, and the elements from one sample of the first
// operand to the next (0 when unbatched).
AttentionShape shape_of(const Instruction& s) noexcept {
  return {s.numbers[0], s.numbers[1], s.numbers[2], s.numbers[3] != 0};
}

template <class T>
void memory_kernel(const Instruction& s, const Frame& frame) noexcept {
  remember_attention(shape_of(s), s.rows(frame), buffer_as<const T>(frame, s.in[0]), s.numbers[4],
                     buffer_as<T>(frame, s.out), reinterpret_cast<T*>(frame.scratch));
}

template <class T>
void value_kernel(const Instruction& s, const Frame& frame) noexcept {
  attention_from_memory(shape_of(s), s.rows(frame), buffer_as<const T>(frame, s.in[0]),
                        buffer_as<T>(frame, s.out), reinterpret_cast<T*>(frame.scratch));
}

template <class T>
void vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  attention_vjp_from_memory(shape_of(s), s.rows(frame), buffer_as<const T>(frame, s.in[0]),
                            s.numbers[4], buffer_as<const T>(frame, s.in[1]),
                            buffer_as<T>(frame, s.out), reinterpret_cast<T*>(frame.scratch));
}

template <Kernel f32, Kernel f64>
void lower(const LowerContext& c, Instruction& s) {
  const AttentionShape a = shape_of(c.attributes);
  s.numbers = {a.length, a.heads, a.width, a.causal, c.in[0].batched ? c.in[0].size() : 0};
  s.run = c.out.dtype == DType::float32 ? f32 : f64;
  dispatch(c.out.dtype, [&](auto zero) {
    using T = decltype(zero);
    s.scratch_bytes = attention_memory_scratch<T>(a) * static_cast<std::int64_t>(sizeof(T));
  });
}

/// Each product of a query with the keys it sees, and each exponential.
template <int kProducts, int kExponential>
std::int64_t work(std::span<const Type>, const Type&, const Attributes& attributes) {
  const AttentionShape a = shape_of(attributes);
  return a.heads * a.pairs_before(a.length) * (kProducts * a.width + kExponential);
}

Op memory_op(std::string_view name, std::string_view doc) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.attributes = {"n_heads", "causal", "shape"};
  op.derived = true;
  return op;
}

}  // namespace

std::vector<Op> attention_memory_ops() {
  Op memory = memory_op("attention_memory", "What attention and its cotangent have in common.");
  memory.infer = [](std::span<const Type> in, const Attributes& attributes) {
    Type out = in[0];
    const AttentionShape a = shape_of(attributes);
    dispatch(out.dtype, [&](auto zero) { out.shape = Shape{attention_memory<decltype(zero)>(a)}; });
    return out;
  };
  memory.work = work<1, 4>;
  memory.lower = lower<memory_kernel<float>, memory_kernel<double>>;

  Op value = memory_op("attention_from_memory", "attention, from attention_memory.");
  value.infer = [](std::span<const Type> in, const Attributes& attributes) {
    Type out = in[0];
    out.shape = Shape(attributes[2]);
    return out;
  };
  value.work = work<1, 0>;
  value.lower = lower<value_kernel<float>, value_kernel<double>>;

  Op vjp = memory_op("attention_vjp_from_memory", "attention_vjp, from attention_memory.");
  vjp.arity = 2;
  vjp.infer = [](std::span<const Type> in, const Attributes& attributes) {
    Type out = in[0];
    out.batched = in[0].batched || in[1].batched;
    out.shape = Shape{attributes[2].at(0), 3 * attributes[2].at(1)};
    return out;
  };
  vjp.work = work<4, 0>;
  vjp.lower = lower<vjp_kernel<float>, vjp_kernel<double>>;
  return {memory, value, vjp};
}

}  // namespace buropt
