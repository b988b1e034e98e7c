// sin, cos.
#include "math/elementary.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace buropt {
namespace {

struct Sin {
  static constexpr std::string_view name = "sin", doc = "Sine of radians.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return sin(x);
  }
  template <class T>
  static T slope(T x, T) {
    return cos(x);
  }
};

struct Cos {
  static constexpr std::string_view name = "cos", doc = "Cosine of radians.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return cos(x);
  }
  template <class T>
  static T slope(T x, T) {
    return -sin(x);
  }
};

}  // namespace

std::vector<Op> trigonometric_ops() { return elementwise_ops<Sin, Cos>(); }

}  // namespace buropt
