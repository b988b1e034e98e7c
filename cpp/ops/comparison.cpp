// Comparisons and logic. A mask is 0 or 1 in the graph's dtype; its derivative is zero.
#include "ops/elementwise.h"
#include "ops/families.h"

namespace buropt {
namespace {

template <class M>
struct MaskOp {
  static constexpr int arity = 2;
  static constexpr bool piecewise_constant = true;
  template <class T>
  static T value(T a, T b) {
    return select(M::holds(a, b), T(1), T(0));
  }
};

struct Greater : MaskOp<Greater> {
  static constexpr std::string_view name = "greater", doc = "1 where a > b, else 0.";
  template <class T>
  static auto holds(T a, T b) {
    return a > b;
  }
};
struct GreaterEqual : MaskOp<GreaterEqual> {
  static constexpr std::string_view name = "greater_equal", doc = "1 where a >= b, else 0.";
  template <class T>
  static auto holds(T a, T b) {
    return a >= b;
  }
};
struct Less : MaskOp<Less> {
  static constexpr std::string_view name = "less", doc = "1 where a < b, else 0.";
  template <class T>
  static auto holds(T a, T b) {
    return a < b;
  }
};
struct LessEqual : MaskOp<LessEqual> {
  static constexpr std::string_view name = "less_equal", doc = "1 where a <= b, else 0.";
  template <class T>
  static auto holds(T a, T b) {
    return a <= b;
  }
};
struct Equal : MaskOp<Equal> {
  static constexpr std::string_view name = "equal", doc = "1 where a == b, else 0.";
  template <class T>
  static auto holds(T a, T b) {
    return a == b;
  }
};
struct NotEqual : MaskOp<NotEqual> {
  static constexpr std::string_view name = "not_equal", doc = "1 where a != b, else 0.";
  template <class T>
  static auto holds(T a, T b) {
    return a != b;
  }
};
struct LogicalAnd : MaskOp<LogicalAnd> {
  static constexpr std::string_view name = "logical_and", doc = "1 where a and b are not 0.";
  template <class T>
  static auto holds(T a, T b) {
    return (a != T(0)) & (b != T(0));
  }
};
struct LogicalOr : MaskOp<LogicalOr> {
  static constexpr std::string_view name = "logical_or", doc = "1 where a or b is not 0.";
  template <class T>
  static auto holds(T a, T b) {
    return (a != T(0)) | (b != T(0));
  }
};
struct LogicalNot {
  static constexpr std::string_view name = "logical_not", doc = "1 where x is 0, else 0.";
  static constexpr int arity = 1;
  static constexpr bool piecewise_constant = true;
  template <class T>
  static T value(T x) {
    return select(x == T(0), T(1), T(0));
  }
};

}  // namespace

std::vector<Op> comparison_ops() {
  return elementwise_ops<Greater, GreaterEqual, Less, LessEqual, Equal, NotEqual, LogicalAnd,
                         LogicalOr, LogicalNot>();
}

}  // namespace buropt
