// norm_root: from a sum of squares to a norm.
#include "ops/elementwise.h"
#include "ops/families.h"

namespace buropt {
namespace {

/// A norm has no derivative at 0; 0 is the smallest of its subgradients. A primitive of its own and
/// not a `where`, which would guard whatever the norm is taken of.
struct NormRoot {
  static constexpr std::string_view name = "norm_root", doc = "Square root with slope 0 at 0.";
  static constexpr int arity = 1;
  static constexpr bool fused = true, singular = true;
  static constexpr From slope_from = From::output;
  static constexpr std::array<double, 2> domain{0.01, 9};
  template <class T>
  static T value(T x) {
    return sqrt(x);
  }
  template <class T>
  static T slope(T, T y) {
    return select(y == T(0), T(0), T(0.5) / y);
  }
};

}  // namespace

std::vector<Op> norm_ops() {
  std::vector<Op> ops = elementwise_ops<NormRoot>();
  ops.front().derived = true;  // no function that users write
  return ops;
}

}  // namespace buropt
