// xlogy, xlog1py, entr, rel_entr, kl_div: products of a number and a logarithm.
//
// Where the number is 0 the product is, whatever the logarithm.
#include "math/entropy.h"
#include "math/elementary.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace buropt {
namespace {

// a / b, but 0 / 0 = 0: where the product is 0 because a is, it does not move with b.
template <class T>
T ratio_or_zero(T a, T b) {
  return select((a == T(0)) & (b == T(0)), T(0), a / b);
}

struct Xlogy {
  static constexpr std::string_view name = "xlogy", doc = "a log(b); 0 where a is 0.";
  static constexpr int arity = 2;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::input;
  static constexpr std::array<Interval, 2> domain{{{-3, 3}, {0.05, 9}}};
  template <class T>
  static T value(T a, T b) {
    return xlogy(a, b);
  }
  template <class T>
  static T slope_a(T, T b, T) {
    return log(b);
  }
  template <class T>
  static T slope_b(T a, T b, T) {
    return ratio_or_zero(a, b);
  }
};

struct Xlog1py {
  static constexpr std::string_view name = "xlog1py", doc = "a log(1 + b); 0 where a is 0.";
  static constexpr int arity = 2;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::input;
  static constexpr std::array<Interval, 2> domain{{{-3, 3}, {-0.9, 9}}};
  template <class T>
  static T value(T a, T b) {
    return xlog1py(a, b);
  }
  template <class T>
  static T slope_a(T, T b, T) {
    return log1p(b);
  }
  template <class T>
  static T slope_b(T a, T b, T) {
    return ratio_or_zero(a, T(1) + b);
  }
};

struct Entr {
  static constexpr std::string_view name = "entr", doc = "-x log(x); 0 at 0, and -inf below.";
  static constexpr int arity = 1;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{0.05, 3};
  template <class T>
  static T value(T x) {
    return entr(x);
  }
  template <class T>
  static T slope(T x, T) {
    return T(-1) - log(x);
  }
};

// log(a / b), as the logarithm of one plus a small number where a and b are close.
template <class T>
T log_ratio(T a, T b) {
  const T relative = (a - b) / b;
  return select(abs(relative) < T(0.5), log1p(relative), log(a) - log(b));
}

struct RelEntr {
  static constexpr std::string_view name = "rel_entr",
                                    doc = "a log(a / b); 0 for a = 0 <= b, and inf outside.";
  static constexpr int arity = 2;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{0.05, 3};
  template <class T>
  static T value(T a, T b) {
    return rel_entr(a, b);
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    return log_ratio(a, b) + T(1);
  }
  template <class T>
  static T slope_b(T a, T b, T) {
    return -ratio_or_zero(a, b);
  }
};

struct KlDiv {
  static constexpr std::string_view name = "kl_div",
                                    doc = "a log(a / b) - a + b; inf outside of a >= 0, b > 0.";
  static constexpr int arity = 2;
  static constexpr bool singular = true;
  static constexpr From slope_from = From::input;
  static constexpr Interval domain{0.05, 3};
  template <class T>
  static T value(T a, T b) {
    return kl_div(a, b);
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    return log_ratio(a, b);
  }
  // 1 - a / b.
  template <class T>
  static T slope_b(T a, T b, T) {
    const T close = select(abs(a - b) < T(0.5f) * b, (b - a) / b, T(1) - a / b);
    return select((a == T(0)) & (b == T(0)), T(1), close);
  }
};

}  // namespace

std::vector<Op> entropy_ops() { return elementwise_ops<Xlogy, Xlog1py, Entr, RelEntr, KlDiv>(); }

}  // namespace buropt
