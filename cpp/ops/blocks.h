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
  /// i: the first element of the block; v: what the instruction before has left.
  using Handler = void (*)(const BlockInstruction* s, std::int64_t i, V, V, V, V, V, V, V, V);
  Handler run;
  T* a;  ///< where operands in memory begin
  T* b;
  std::int32_t number;
};

/// Where an operand comes from.
enum class Operand : std::uint8_t {
  left,    ///< what the instruction before has left in registers
  array,   ///< an element for each
  twice,   ///< the sum of such an element and itself
  own,     ///< memory of one block, the same for all of them
  number,  ///< one element for all
  same,    ///< the second operand: the array that the first one is
};

/// The handlers of a primitive, by where its operands come from.
template <class T>
struct BlockHandlers {
  using Handler = typename BlockInstruction<T>::Handler;
  static constexpr std::size_t kKinds = 6;
  std::array<Handler, kKinds * kKinds> forms{};

  static constexpr std::size_t index(Operand a, Operand b) {
    return static_cast<std::size_t>(a) * kKinds + static_cast<std::size_t>(b);
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
BUROPT_INLINE Pack<T> read(const T* memory, std::int64_t i, typename Pack<T>::Vector left, int k) {
  if constexpr (operand == Operand::left) return Pack<T>::wrap(left);
  if constexpr (operand == Operand::number) return *memory;
  const T* block = operand == Operand::own ? memory : memory + i;
  const Pack<T> x = Pack<T>::load(block + k * Pack<T>::size);
  return operand == Operand::twice ? x + x : x;
}

template <class F, class T, Operand a, Operand b, class V = typename Pack<T>::Vector>
void handler(const BlockInstruction<T>* s, std::int64_t i, V v0, V v1, V v2, V v3, V v4, V v5, V v6,
             V v7) {
  const T* in_a = s->a;
  const T* in_b = s->b;
  const auto f = [&](V left, int k) __attribute__((always_inline)) {
    const Pack<T> x = read<T, a>(in_a, i, left, k);
    if constexpr (requires { F::value(Pack<T>(), 1); })
      return F::value(x, s->number).v;
    else if constexpr (F::arity == 1)
      return F::value(x).v;
    else if constexpr (b == Operand::same)
      return F::value(x, x).v;
    else
      return F::value(x, read<T, b>(in_b, i, left, k)).v;
  };
  return s[1].run(s + 1, i, f(v0, 0), f(v1, 1), f(v2, 2), f(v3, 3), f(v4, 4), f(v5, 5), f(v6, 6),
                  f(v7, 7));
}

/// Such a formula has forms by its first operand alone: the second one is given as `left`.
template <class F, class T>
constexpr bool is_unary() {
  if constexpr (requires { F::value(Pack<T>(), 1); })
    return true;
  else
    return F::arity == 1;
}

template <class F, class T>
BlockHandlers<T> handlers() {
  BlockHandlers<T> h;
  const auto form = [&]<Operand a, Operand b>() { h.forms[h.index(a, b)] = handler<F, T, a, b>; };
  const auto forms = [&]<Operand a>() {
    using enum Operand;
    form.template operator()<a, left>();
    if constexpr (!is_unary<F, T>()) {
      form.template operator()<a, array>();
      form.template operator()<a, twice>();
      form.template operator()<a, own>();
      form.template operator()<a, number>();
      if constexpr (a == array) form.template operator()<a, same>();
    }
  };
  forms.template operator()<Operand::left>();
  forms.template operator()<Operand::array>();
  forms.template operator()<Operand::twice>();
  forms.template operator()<Operand::own>();
  forms.template operator()<Operand::number>();
  return h;
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
