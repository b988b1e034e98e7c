// exp, expm1, log, log1p, logaddexp, softplus, expit.
#include "math/elementary.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace buropt {
namespace {

struct Exp {
  static constexpr std::string_view name = "exp", doc = "Exponential.";
  static constexpr int arity = 1;
  static constexpr From slope_from = From::output;
  template <class T>
  static T value(T x) {
    return exp(x);
  }
  template <class T>
  static T slope(T, T y) {
    return y;
  }
};

struct Expm1 {
  static constexpr std::string_view name = "expm1", doc = "exp(x) - 1, right near 0.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return expm1(x);
  }
  template <class T>
  static T slope(T x, T) {
    return exp(x);
  }  // y + 1 would lose all digits for x << 0
};

struct Log {
  static constexpr std::string_view name = "log", doc = "Natural logarithm.";
  static constexpr int arity = 1;
  static constexpr bool fused = true, singular = true;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{0.05, 9};
  template <class T>
  static T value(T x) {
    return log(x);
  }
  template <class T>
  static T slope(T x, T) {
    return T(1) / x;
  }
};

struct Log1p {
  static constexpr std::string_view name = "log1p", doc = "log(1 + x), right near 0.";
  static constexpr int arity = 1;
  static constexpr bool fused = true, singular = true;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{-0.9, 9};
  template <class T>
  static T value(T x) {
    return log1p(x);
  }
  template <class T>
  static T slope(T x, T) {
    return T(1) / (T(1) + x);
  }
};

struct Expit {
  static constexpr std::string_view name = "expit", doc = "Logistic sigmoid 1 / (1 + exp(-x)).";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  template <class T>
  static T value(T x) {
    return expit(x);
  }
  template <class T>
  static T slope(T x, T y) {
    return y * expit(-x);
  }  // y (1 - y) would be 0 for large x
};

struct Logaddexp {
  static constexpr std::string_view name = "logaddexp", doc = "log(exp(a) + exp(b)).";
  static constexpr int arity = 2;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T a, T b) {
    return logaddexp(a, b);
  }
  static NodeId identity(Emitter& e, std::span<const NodeId> in) {
    for (std::size_t k = 0; k < 2; ++k) {
      const Type zero = e.type(in[k]);
      if (e.uniform_value(in[k]) == 0.0 && zero.size() == 1 &&
          zero.shape.rank() <= e.type(in[1 - k]).shape.rank()) {
        return e.emit("softplus", {in[1 - k]});
      }
    }
    return kNone;
  }
  // A bounded weight instead of exp(a - y): no overflow at any order. Equal infinities have no
  // difference: two +inf share the cotangent, two -inf get none.
  template <class T>
  static T slope_a(T a, T b, T) {
    const T d = a - b;
    const T infinite = select(a == b, select(a < T(0), T(0), T(0.5)), d);
    return select(d == d, expit(d), infinite);
  }
  template <class T>
  static T slope_b(T a, T b, T) {
    return slope_a(b, a, a);
  }
};

// What logaddexp(0, x) becomes: the same function with one operand less.
struct Softplus {
  static constexpr std::string_view name = "softplus", doc = "log(1 + exp(x)).";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return softplus(x);
  }
  template <class T>
  static T slope(T x, T) {
    return expit(x);
  }
};

}  // namespace

std::vector<Op> exponential_ops() {
  return elementwise_ops<Exp, Expm1, Log, Log1p, Expit, Logaddexp, Softplus>();
}

}  // namespace buropt
