// Blocks: cheap elementwise formulas over a block of elements, as many as eight registers hold.
//
// An instruction leaves its result in these registers and calls the next one with them, so a value
// that only the next instruction reads never goes to memory. What the formulas cost is then the
// arithmetic, and not loops, loads and stores around it.
#pragma once

#include <string_view>
#include <vector>

#include "ops/elementwise.h"

namespace buropt {

/// Elements of a block.
template <class T>
inline constexpr std::int64_t kBlock = 8 * Pack<T>::size;

template <class T>
struct BlockInstruction {
  using V = typename Pack<T>::Vector;
  /// at: where each operand's block begins; v: what the instruction before has left.
  using Handler = void (*)(T* const* at, const BlockInstruction* s, V, V, V, V, V, V, V, V);
  Handler run;
  std::int32_t a;  ///< operands in memory, by their place in `at`
  std::int32_t b;
  std::int32_t number;
};

/// An operand comes from memory, or is what the instruction before has left.
enum class Operand { memory, left };

/// The handlers of a primitive, by where its operands come from.
template <class T>
struct BlockHandlers {
  using Handler = typename BlockInstruction<T>::Handler;
  std::array<Handler, 4> forms{};

  static constexpr std::size_t index(Operand a, Operand b) {
    return (a == Operand::left ? 1 : 0) + (b == Operand::left ? 2 : 0);
  }
  Handler of(Operand a, Operand b) const { return forms[index(a, b)]; }
};

struct BlockOp {
  std::string_view name;
  BlockHandlers<float> f32;
  BlockHandlers<double> f64;
};

namespace blocks {

template <class T, Operand operand>
BUROPT_INLINE Pack<T> read(const T* memory, typename Pack<T>::Vector left, int k) {
  if constexpr (operand == Operand::left) return Pack<T>::wrap(left);
  return Pack<T>::load(memory + k * Pack<T>::size);
}

template <class F, class T, Operand a, Operand b, class V = typename Pack<T>::Vector>
void handler(T* const* at, const BlockInstruction<T>* s, V v0, V v1, V v2, V v3, V v4, V v5, V v6,
             V v7) {
  const T* in_a = at[s->a];
  const T* in_b = at[s->b];
  const auto f = [&](V left, int k) __attribute__((always_inline)) {
    if constexpr (requires { F::value(Pack<T>(), 1); })
      return F::value(read<T, a>(in_a, left, k), s->number).v;
    else if constexpr (F::arity == 1)
      return F::value(read<T, a>(in_a, left, k)).v;
    else
      return F::value(read<T, a>(in_a, left, k), read<T, b>(in_b, left, k)).v;
  };
  return s[1].run(at, s + 1, f(v0, 0), f(v1, 1), f(v2, 2), f(v3, 3), f(v4, 4), f(v5, 5), f(v6, 6),
                  f(v7, 7));
}

template <class F, class T>
BlockHandlers<T> handlers() {
  using enum Operand;
  return {{handler<F, T, memory, memory>, handler<F, T, left, memory>, handler<F, T, memory, left>,
           handler<F, T, left, left>}};
}

template <class F>
BlockOp record(std::string_view name) {
  return {name, handlers<F, float>(), handlers<F, double>()};
}

/// A formula, and its fused instructions of at most two operands.
template <class F>
void append(std::vector<BlockOp>& ops) {
  ops.push_back(record<F>(F::name));
  const auto pull = [&]<int K>() {
    using P = elementwise::Pull<F, K>;
    if constexpr (P::arity <= 2) ops.push_back(record<P>(elementwise::pull_name<F, K>()));
  };
  if constexpr (elementwise::is_fused<F>()) {
    if constexpr (elementwise::has_slope<F, 0>()) pull.template operator()<0>();
    if constexpr (elementwise::has_slope<F, 1>()) pull.template operator()<1>();
  }
}

}  // namespace blocks

template <class... F>
std::vector<BlockOp> block_ops() {
  std::vector<BlockOp> ops;
  (blocks::append<F>(ops), ...);
  return ops;
}

/// The families that have such handlers.
std::vector<BlockOp> arithmetic_block_ops();
std::vector<BlockOp> power_block_ops();

/// The handlers of a primitive, or null.
const BlockOp* find_block_op(std::string_view name);

}  // namespace buropt
