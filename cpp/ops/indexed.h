// Derives the record of an elementwise primitive that has one operand and a constant whole number.
//
//   struct Polygamma {
//     static constexpr std::string_view name = "polygamma", doc = "Derivatives of digamma.";
//     template <class T> static T value(T x, int n) { return polygamma(x, n); }
//     static Symbol slope(Symbol x, int n) { return apply_indexed("polygamma", x, n + 1); }
//   };
//
// The number is the attribute "n". A family of functions whose derivatives are in the family is
// exact at any order, also where a formula for a single derivative would cancel.
// Optional members:
//   domain                   where tests sample
//   has_negative_n           the family goes on below 0
//   identity(e, inputs, n)   a simpler node of the same value, or kNone
#pragma once

#include <limits>

#include "ops/elementwise.h"

namespace buropt {
namespace indexed {

template <class F>
inline constexpr bool has_negative_n = requires { requires F::has_negative_n; };

// Of an int n there are neighbours, which derivatives are made of. Functions that begin at n = 0
// are computed by recurrences as long as n.
template <class F>
inline constexpr std::int64_t kMostN =
    has_negative_n<F> ? std::numeric_limits<int>::max() - 1 : std::int64_t{1} << 20;

template <class F, class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t size = s.numbers[0] * s.rows(frame);
  const int n = static_cast<int>(s.numbers[1]);
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  constexpr std::int64_t lanes = Pack<T>::size;
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    F::value(Pack<T>::load(in + i), n).store(out + i);
  }
  if (i < size) {
    const int rest = static_cast<int>(size - i);
    F::value(Pack<T>::load_n(in + i, rest, T(1)), n).store_n(out + i, rest);
  }
}

template <class F, class T>
void scalar_handler(T* registers, const ScalarInstruction<T>* at) {
  registers[at->out] = F::value(registers[at->in[0]], static_cast<int>(at->number));
  BUROPT_CONTINUE(registers, at);
}

template <class F>
Type infer(std::span<const Type> in, const Attributes& attributes) {
  if (attributes[0].size() != 1) {
    raise(ErrorKind::value, "buropt.%.*s: the constant n is missing",
          static_cast<int>(F::name.size()), F::name.data());
  }
  const std::int64_t n = attributes[0][0];
  constexpr std::int64_t least = has_negative_n<F> ? -kMostN<F> : 0;
  if (n < least || n > kMostN<F>) {
    raise(ErrorKind::value, "buropt.%.*s: the constant n is %lld, not in %lld to %lld",
          static_cast<int>(F::name.size()), F::name.data(), static_cast<long long>(n),
          static_cast<long long>(least), static_cast<long long>(kMostN<F>));
  }
  return elementwise::infer(F::name, in);
}

template <class F>
NodeId simplify(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  if constexpr (requires { &F::identity; })
    return attributes[0].size() == 1 ? F::identity(e, inputs, attributes[0][0]) : kNone;
  else
    return kNone;
}

template <class F>
void lower(const LowerContext& c, Instruction& s) {
  s.numbers = {c.out.size(), c.attributes[0][0]};
  s.run = c.out.dtype == DType::float32 ? kernel<F, float> : kernel<F, double>;
}

template <class F>
void reverse(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  const Symbol slope = F::slope(Symbol(e, node.inputs[0]), static_cast<int>(node.attributes[0][0]));
  cotangents[0] = (Symbol(e, cotangent) * slope).in(e, e.type(node.id).dtype);
}

}  // namespace indexed

/// The record of a struct as above.
template <class F>
Op indexed_op() {
  Op op;
  op.name = F::name;
  op.doc = F::doc;
  op.attributes = {"n"};
  op.elementwise = true;
  op.in_place = true;
  if constexpr (requires { F::domain; }) op.domain.fill(F::domain);
  op.simplify = indexed::simplify<F>;
  op.infer = indexed::infer<F>;
  op.reverse = indexed::reverse<F>;
  op.lower = indexed::lower<F>;
  op.scalar = {indexed::scalar_handler<F, float>, indexed::scalar_handler<F, double>};
  return op;
}

}  // namespace buropt
