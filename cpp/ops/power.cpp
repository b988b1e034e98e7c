// power, and integer_power for constant integer exponents: no logarithm, right at 0 and below.
#include "math/elementary.h"
#include "ops/blocks.h"
#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/indexed.h"

namespace buropt {
namespace {

struct Power {
  static constexpr std::string_view name = "power", doc = "a to the power b.";
  static constexpr int arity = 2;
  static constexpr bool fused = true, singular = true;
  static constexpr Interval domain{0.1, 3};
  template <class T>
  static T value(T a, T b) {
    return pow(a, b);
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    const T slope = b * pow(a, b - T(1));
    return select((b == T(0)) & (slope != slope), T(0), slope);
  }
  // The logarithm counts only where the base is not 0: 0^b does not move with b.
  template <class T>
  static T slope_b(T a, T, T y) {
    return select(a == T(0), T(0), y * log(a));
  }
};

struct IntegerPower {
  static constexpr std::string_view name = "integer_power",
                                    doc = "x to a constant integer power, by multiplication.";
  static constexpr bool has_negative_n = true;
  template <class T>
  static T value(T x, int n) {
    return powi(x, n);
  }
  static NodeId identity(Emitter& e, std::span<const NodeId> inputs, std::int64_t n) {
    if (n == 1) return inputs[0];
    return n == 2 ? e.emit("square", {inputs[0]}) : kNone;
  }
  static Symbol slope(Symbol x, int n) {
    return Symbol(n) * apply_indexed("integer_power", x, n - 1);
  }
};

}  // namespace

std::vector<Op> power_ops() {
  std::vector<Op> ops = elementwise_ops<Power>();
  ops.push_back(indexed_op<IntegerPower>());
  return ops;
}

std::vector<BlockOp> power_block_ops() { return block_ops<IntegerPower>(); }

}  // namespace buropt
