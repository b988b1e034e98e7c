// huber and pseudo_huber: losses that grow like the square near 0 and like the size far from it.
#include "math/elementary.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace buropt {
namespace {

/// What a loss is for a negative delta.
template <class T>
T infinite_below_zero(T delta, T loss) {
  return select(delta < T(0), T(kInfinity<T>), loss);
}

// On the border |b| = a the loss counts as the square, as its value does.
struct Huber {
  static constexpr std::string_view name = "huber",
                                    doc = "b^2 / 2 for |b| <= a, a (|b| - a / 2) for larger b.";
  static constexpr int arity = 2;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  static constexpr std::array<Interval, 2> domain{{{0.1, 2}, {-3, 3}}};
  template <class T>
  static T value(T a, T b) {
    const T size = abs(b);
    const T far = a * (size - T(0.5f) * a);
    return infinite_below_zero(a, select(size <= a, T(0.5f) * (b * b), far));
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    const T beyond = select(abs(b) <= a, T(0), abs(b) - a);
    return select(a < T(0), T(0), beyond);
  }
  template <class T>
  static T slope_b(T a, T b, T) {
    const T clipped = select(abs(b) <= a, b, a * sign(b));
    return select(a < T(0), T(0), clipped);
  }
};

// With h = sqrt(a^2 + b^2) it is a b^2 / (a + h), in which nothing cancels.
struct PseudoHuber {
  static constexpr std::string_view name = "pseudo_huber", doc = "a^2 (sqrt(1 + (b / a)^2) - 1).";
  static constexpr int arity = 2;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  static constexpr std::array<Interval, 2> domain{{{0.1, 2}, {-3, 3}}};
  template <class T>
  static T value(T a, T b) {
    const T total = a + hypot(a, b);
    const T finite = select(total == T(0), T(0), b / total);
    const T part = select(total == T(kInfinity<T>), sign(b), finite);
    return infinite_below_zero(a, b * (part * a));
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    const T h = hypot(a, b);
    const T part = b * (b / (a + h));
    return select((a < T(0)) | (h == T(0)), T(0), part * (part / h));
  }
  template <class T>
  static T slope_b(T a, T b, T) {
    const T h = hypot(a, b);
    return select((a < T(0)) | (h == T(0)), T(0), a * (b / h));
  }
};

}  // namespace

std::vector<Op> robust_ops() { return elementwise_ops<Huber, PseudoHuber>(); }

}  // namespace buropt
