// Derives a primitive's whole record from a struct of formulas.
//
//   struct Softplus {
//     static constexpr std::string_view name = "softplus", doc = "log(1 + exp(x)).";
//     static constexpr int arity = 1;
//     static constexpr From slope_from = From::input;            // what the slope needs
//     template <class T> static T value(T x) { return softplus(x); }
//     template <class T> static T slope(T x, T) { return expit(x); }   // from x and the value
//   };
//
// The same templates run on packs (kernels), floats (scalar executor) and symbols (derivative
// rule). A binary struct gives slope_a(a, b, y) and slope_b(a, b, y). Optional members:
//   fused = true     derive one instruction `cotangent * slope`, whose derivative is the expansion
//   singular = true  a zero cotangent gives zero, whatever the slope is
//   identity(e, inputs)         a simpler node of the same value, or kNone
//   piecewise_constant = true   no derivative (comparisons, sign)
//   domain           where tests sample: one range for all operands, or a list with one for each
// A binary struct without slope_a or slope_b does not move with that operand.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <numeric>
#include <tuple>
#include <utility>

#include "base/simd.h"
#include "math/rows.h"
#include "ops/loop.h"
#include "ops/op.h"
#include "ops/symbol.h"

namespace buropt {

enum class From { input, output, both };

/// A constant of a formula, rounded to the number type.
template <class T>
BUROPT_INLINE T number(double value) {
  if constexpr (std::same_as<T, Symbol>)
    return value;
  else
    return static_cast<Scalar<T>>(value);
}

namespace elementwise {

template <class F>
constexpr bool is_fused() {
  if constexpr (requires { F::fused; }) return F::fused;
  return false;
}
template <class F>
constexpr bool is_singular() {
  if constexpr (requires { F::singular; }) return F::singular;
  return false;
}
template <class F>
constexpr bool is_piecewise_constant() {
  if constexpr (requires { F::piecewise_constant; }) return F::piecewise_constant;
  return false;
}
/// Whether the value moves with operand K.
template <class F, int K>
constexpr bool has_slope() {
  if constexpr (F::arity == 1)
    return K == 0 && requires { &F::template slope<Symbol>; };
  else if constexpr (K == 0)
    return requires { &F::template slope_a<Symbol>; };
  else
    return requires { &F::template slope_b<Symbol>; };
}
template <class F>
constexpr From slope_from() {
  if constexpr (requires { F::slope_from; }) return F::slope_from;
  return From::both;
}

/// cotangent * slope of operand K, with the rule for zero cotangents where it is needed.
template <class F, int K, class T, class... Operands>
T pull(T cotangent, Operands... operands_and_y) {
  const T slope = [&] {
    if constexpr (F::arity == 1)
      return F::slope(operands_and_y...);
    else if constexpr (K == 0)
      return F::slope_a(operands_and_y...);
    else
      return F::slope_b(operands_and_y...);
  }();
  const T product = cotangent * slope;
  if constexpr (is_singular<F>()) {
    // Only what is not a number is replaced: the product must keep its own derivative by a
    // cotangent that happens to be 0.
    return select((cotangent == T(0)) & (product != product), T(0), product);
  } else {
    return product;
  }
}

/// The fused instruction of operand K as a formula of its own. Its operands: the cotangent, then
/// what the slope needs of (operands, value).
template <class F, int K>
struct Pull {
  static constexpr From from = slope_from<F>();
  static constexpr int arity =
      1 + (from == From::output ? 0 : F::arity) + (from == From::input ? 0 : 1);

  template <class T>
  static T value(T cotangent, T a) {
    if constexpr (F::arity == 1)
      return pull<F, K>(cotangent, a, a);
    else
      return pull<F, K>(cotangent, a, a, a);  // From::output: only the value is looked at
  }
  template <class T>
  static T value(T cotangent, T a, T b) {
    if constexpr (F::arity == 1)
      return pull<F, K>(cotangent, a, b);
    else
      return pull<F, K>(cotangent, a, b, a);  // From::input: the value is not looked at
  }
  template <class T>
  static T value(T cotangent, T a, T b, T y) {
    return pull<F, K>(cotangent, a, b, y);
  }
};

template <class F, class T, std::size_t... k>
BUROPT_INLINE T call(const std::array<T, sizeof...(k)>& operands, std::index_sequence<k...>) {
  return F::value(operands[k]...);
}

/// Short rows, for each of which another operand repeats, are walked several at a time.
inline constexpr std::int64_t kShortRow = 256;

/// How an instruction walks its operands: a few rows after the other.
template <class T, int N>
class Walk {
  static constexpr int lanes = Pack<T>::size;

 public:
  std::int64_t outer, inner;          ///< rows, and their length
  std::int64_t together = 1;          ///< rows that are walked as one
  std::array<const T*, N> start;      ///< of operand k
  std::array<std::int64_t, N> row{};  ///< from one row to the next
  std::array<std::int64_t, N> step;   ///< from one element to the next

  BUROPT_INLINE Walk(const Instruction& s, const Frame& frame) noexcept {
    const std::int64_t* numbers = s.numbers.data();
    const std::int64_t rows = s.rows(frame);
    outer = numbers[1] != 0 ? numbers[0] * rows : numbers[0];
    inner = numbers[3] != 0 ? numbers[2] * rows : numbers[2];
    bool joins = outer > 1 && inner > 0 && inner <= kShortRow;
    for (std::size_t k = 0; k < N; ++k) {
      start[k] = buffer_as<const T>(frame, s.in[k]);
      row[k] = numbers[4 + 2 * k];
      step[k] = numbers[5 + 2 * k];
      joins = joins && (row[k] == 0 || row[k] == step[k] * inner);
    }
    if (joins) join_rows();
  }

 private:
  // Not inlined: one for all formulas of N operands.
  [[gnu::noinline]] void join_rows() noexcept {
    // As many as make whole packs, if they are not too many.
    const std::int64_t whole = lanes / std::gcd(inner, static_cast<std::int64_t>(lanes));
    together = std::min(outer, 2 * kShortRow / inner);
    if (together > whole) together -= together % whole;
    for (std::size_t k = 0; k < N; ++k) {
      if (row[k] != 0 || step[k] == 0) continue;
      for (std::int64_t r = 0; r < together; ++r) {
        copy_columns(start[k], copies_[k] + r * inner, inner);
      }
      start[k] = copies_[k];
    }
  }

  alignas(BUROPT_VECTOR_BYTES) T copies_[N][2 * kShortRow];
};

template <class F, class T, int N>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  constexpr auto indices = std::make_index_sequence<N>();
  constexpr int lanes = Pack<T>::size;
  const Walk<T, N> walk(s, frame);
  T* out = buffer_as<T>(frame, s.out);
  // A repeated value is read from a pack-sized copy with step 0, so that one loop serves all cases.
  alignas(BUROPT_VECTOR_BYTES) T splat[N][lanes];
  std::array<const T*, N> at;
  for (std::int64_t o = 0; o < walk.outer; o += walk.together) {
    const std::array<std::int64_t, N> step = walk.step;
    for (std::size_t k = 0; k < N; ++k) {
      at[k] = walk.start[k] + o * walk.row[k];
      if (step[k] == 0) {
        Pack<T>(*at[k]).store(splat[k]);
        at[k] = splat[k];
      }
    }
    const std::int64_t n = std::min(walk.together, walk.outer - o) * walk.inner;
    std::int64_t i = 0;
    std::array<Pack<T>, N> operands;
    for (; i + lanes <= n; i += lanes) {
      for (std::size_t k = 0; k < N; ++k) operands[k] = Pack<T>::load(at[k] + i * step[k]);
      call<F, Pack<T>>(operands, indices).store(out + i);
    }
    if (i < n) {
      // A number alone is not masked: a masked load waits until a masked store is in the cache.
      const int rest = static_cast<int>(n - i);
      for (std::size_t k = 0; k < N; ++k) {
        const T* last = at[k] + i * step[k];
        operands[k] = rest == 1 ? Pack<T>(*last) : Pack<T>::load_n(last, rest, T(1));
      }
      const Pack<T> y = call<F, Pack<T>>(operands, indices);
      if (rest == 1)
        out[i] = y[0];
      else
        y.store_n(out + i, rest);
    }
    out += n;
  }
}

template <class F, class T, int N>
void scalar_handler(T* registers, const ScalarInstruction<T>* at) {
  std::array<T, N> operands;
  for (std::size_t k = 0; k < N; ++k) operands[k] = registers[at->in[k]];
  registers[at->out] = call<F, T>(operands, std::make_index_sequence<N>());
  BUROPT_CONTINUE(registers, at);
}

template <class F, int N>
void lower(const LowerContext& c, Instruction& s) {
  const std::optional<Loop> loop = plan_loop(c.in, c.out);
  BUROPT_ASSERT(loop.has_value());
  s.numbers = loop->numbers();
  s.run = c.out.dtype == DType::float32 ? kernel<F, float, N> : kernel<F, double, N>;
}

Type infer(std::string_view name, std::span<const Type> in);

/// Drops broadcasts that the loop does anyway and inserts those that it cannot do.
NodeId simplify(Emitter& e, std::string_view name, std::span<const NodeId> inputs);

template <class F>
NodeId simplify_named(Emitter& e, std::span<const NodeId> inputs, const Attributes&) {
  if constexpr (requires { F::identity(e, inputs); }) {
    const NodeId found = F::identity(e, inputs);
    if (found != kNone) return found;
  }
  return simplify(e, F::name, inputs);
}

template <class F>
Type infer_named(std::span<const Type> in, const Attributes&) {
  return infer(F::name, in);
}

template <class F, int K>
NodeId expand(Emitter& e, std::span<const NodeId> inputs, const Attributes& = {}) {
  const DType dtype = e.type(inputs[0]).dtype;
  const auto at = [&](std::size_t i) { return Symbol(e, inputs[i]); };
  using P = Pull<F, K>;
  if constexpr (P::arity == 2)
    return P::template value<Symbol>(at(0), at(1)).in(e, dtype);
  else if constexpr (P::arity == 3)
    return P::template value<Symbol>(at(0), at(1), at(2)).in(e, dtype);
  else
    return P::template value<Symbol>(at(0), at(1), at(2), at(3)).in(e, dtype);
}

/// Names of the derived instructions. Made when asked for: nothing of the core may run while it is
/// loaded, before the CPU is known to have its instructions (bind/cpu.h).
template <class F, int K>
std::string_view pull_name() {
  static const std::string name =
      std::string(F::name) + (F::arity == 1 ? "_vjp" : (K == 0 ? "_vjp_a" : "_vjp_b"));
  return name;
}

template <class F, int K>
NodeId emit_pull(Emitter& e, const NodeView& node, NodeId cotangent) {
  std::vector<NodeId> operands{cotangent};
  if (slope_from<F>() != From::output) {
    operands.insert(operands.end(), node.inputs.begin(), node.inputs.end());
  }
  if (slope_from<F>() != From::input) operands.push_back(node.id);
  if constexpr (is_fused<F>()) {
    static const OpId id = find_op(pull_name<F, K>());
    return e.emit(id, operands, {});
  } else {
    return expand<F, K>(e, operands);
  }
}

template <class F>
void reverse(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  if constexpr (!is_piecewise_constant<F>()) {
    if constexpr (has_slope<F, 0>()) cotangents[0] = emit_pull<F, 0>(e, node, cotangent);
    if constexpr (has_slope<F, 1>()) cotangents[1] = emit_pull<F, 1>(e, node, cotangent);
  }
}

template <class F>
Op basic_record() {
  Op record;
  record.name = F::name;
  record.doc = F::doc;
  record.arity = F::arity;
  record.elementwise = true;
  record.in_place = true;
  if constexpr (requires { Interval(F::domain); })
    record.domain.fill(F::domain);
  else if constexpr (requires { F::domain; })
    std::copy(F::domain.begin(), F::domain.end(), record.domain.begin());
  record.simplify = simplify_named<F>;
  record.infer = infer_named<F>;
  record.lower = lower<F, F::arity>;
  record.scalar = {scalar_handler<F, float, F::arity>, scalar_handler<F, double, F::arity>};
  return record;
}

template <class F, int K>
Op pull_record() {
  using P = Pull<F, K>;
  Op record;
  record.name = pull_name<F, K>();
  record.doc = "Cotangent times slope.";
  record.arity = P::arity;
  record.elementwise = true;
  record.in_place = true;
  record.derived = true;
  record.simplify = [](Emitter& e, std::span<const NodeId> inputs, const Attributes&) {
    return simplify(e, pull_name<F, K>(), inputs);
  };
  record.infer = [](std::span<const Type> in, const Attributes&) {
    return infer(pull_name<F, K>(), in);
  };
  record.lower = lower<P, P::arity>;
  record.scalar = {scalar_handler<P, float, P::arity>, scalar_handler<P, double, P::arity>};
  record.expand = expand<F, K>;
  return record;
}

template <class F>
void append(std::vector<Op>& ops) {
  Op record = basic_record<F>();
  if constexpr (requires { F::reverse; })
    record.reverse = F::reverse;
  else
    record.reverse = reverse<F>;
  ops.push_back(record);
  if constexpr (is_fused<F>()) {
    if constexpr (has_slope<F, 0>()) ops.push_back(pull_record<F, 0>());
    if constexpr (has_slope<F, 1>()) ops.push_back(pull_record<F, 1>());
  }
}

}  // namespace elementwise

/// The records of a list of structs, fused instructions included.
template <class... F>
std::vector<Op> elementwise_ops() {
  std::vector<Op> ops;
  (elementwise::append<F>(ops), ...);
  return ops;
}

}  // namespace buropt
