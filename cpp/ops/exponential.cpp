// exp, exp2, exp10, expm1, log, log2, log10, log1p, logaddexp, logaddexp2, softplus, expit, logit.
#include <numbers>

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

struct Exp2 {
  static constexpr std::string_view name = "exp2", doc = "2 to the power x.";
  static constexpr int arity = 1;
  static constexpr bool fused = true;
  static constexpr From slope_from = From::output;
  template <class T>
  static T value(T x) {
    return exp2(x);
  }
  template <class T>
  static T slope(T, T y) {
    return number<T>(std::numbers::ln2) * y;
  }
};

struct Exp10 {
  static constexpr std::string_view name = "exp10", doc = "10 to the power x.";
  static constexpr int arity = 1;
  static constexpr From slope_from = From::output;
  template <class T>
  static T value(T x) {
    return exp10(x);
  }
  template <class T>
  static T slope(T, T y) {
    return number<T>(std::numbers::ln10) * y;
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

struct Log2 {
  static constexpr std::string_view name = "log2", doc = "Logarithm to base 2.";
  static constexpr int arity = 1;
  static constexpr bool fused = true, singular = true;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{0.05, 9};
  template <class T>
  static T value(T x) {
    return log2(x);
  }
  template <class T>
  static T slope(T x, T) {
    return number<T>(1 / std::numbers::ln2) / x;
  }
};

struct Log10 {
  static constexpr std::string_view name = "log10", doc = "Logarithm to base 10.";
  static constexpr int arity = 1;
  static constexpr bool fused = true, singular = true;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{0.05, 9};
  template <class T>
  static T value(T x) {
    return log10(x);
  }
  template <class T>
  static T slope(T x, T) {
    return number<T>(1 / std::numbers::ln10) / x;
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

struct Logit {
  static constexpr std::string_view name = "logit", doc = "log(x / (1 - x)).";
  static constexpr int arity = 1;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{0.02, 0.98};
  template <class T>
  static T value(T x) {
    return logit(x);
  }
  template <class T>
  static T slope(T x, T) {
    return T(1) / (x * (T(1) - x));
  }
};

// The slope of log(e^a + e^b) by a, where d = a - b. A bounded weight instead of exp(a - y): no
// overflow at any order. Equal infinities have no difference: two +inf share the cotangent, two
// -inf get none.
template <class T>
T weight(T d, T a, T b) {
  const T infinite = select(a == b, select(a < T(0), T(0), T(0.5)), d);
  return select(d == d, expit(d), infinite);
}

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
  template <class T>
  static T slope_a(T a, T b, T) {
    return weight(a - b, a, b);
  }
  template <class T>
  static T slope_b(T a, T b, T) {
    return slope_a(b, a, a);
  }
};

struct Logaddexp2 {
  static constexpr std::string_view name = "logaddexp2", doc = "log2(2^a + 2^b).";
  static constexpr int arity = 2;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T a, T b) {
    return logaddexp2(a, b);
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    return weight(number<T>(std::numbers::ln2) * (a - b), a, b);
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
  return elementwise_ops<Exp, Exp2, Exp10, Expm1, Log, Log2, Log10, Log1p, Expit, Logit, Logaddexp,
                         Logaddexp2, Softplus>();
}

}  // namespace buropt
