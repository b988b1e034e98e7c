// Bessel functions of constant orders: iv, ive, spherical_jn; and sinc.
#include "math/bessel.h"

#include <numbers>

#include "ops/elementwise.h"
#include "ops/families.h"
#include "ops/indexed.h"

namespace buropt {
namespace {

// The slope in the family: the mean of the two neighbours, of which I_-1 is I_1.
Symbol mean_of_neighbours(std::string_view name, Symbol x, int n) {
  if (n == 0) return apply_indexed(name, x, 1);
  return Symbol(0.5) * (apply_indexed(name, x, n - 1) + apply_indexed(name, x, n + 1));
}

struct Iv {
  static constexpr std::string_view name = "iv",
                                    doc = "Modified Bessel function of the first kind of order n.";
  template <class T>
  static T value(T x, int n) {
    return iv(x, n);
  }
  static Symbol slope(Symbol x, int n) { return mean_of_neighbours("iv", x, n); }
};

struct Ive {
  static constexpr std::string_view name = "ive", doc = "iv times exp(-|x|).";
  template <class T>
  static T value(T x, int n) {
    return ive(x, n);
  }
  static Symbol slope(Symbol x, int n) {
    return mean_of_neighbours("ive", x, n) - sign(x) * apply_indexed("ive", x, n);
  }
};

struct SphericalJn {
  static constexpr std::string_view name = "spherical_jn",
                                    doc = "Spherical Bessel function of order n.";
  template <class T>
  static T value(T x, int n) {
    return spherical_jn(x, n);
  }
  static Symbol slope(Symbol x, int n) {
    if (n == 0) return -apply_indexed("spherical_jn", x, 1);
    return Symbol(n / (2.0 * n + 1)) * apply_indexed("spherical_jn", x, n - 1) -
           Symbol((n + 1) / (2.0 * n + 1)) * apply_indexed("spherical_jn", x, n + 1);
  }
};

struct Sinc {
  static constexpr std::string_view name = "sinc", doc = "sin(pi x) / (pi x).";
  static constexpr int arity = 1;
  static constexpr From slope_from = From::input;
  template <class T>
  static T value(T x) {
    return sinc(x);
  }
  // (cos(pi x) - sinc(x)) / x would cancel near 0, and have no value there.
  template <class T>
  static T slope(T x, T) {
    return T(-std::numbers::pi) * apply_indexed("spherical_jn", T(std::numbers::pi) * x, 1);
  }
};

}  // namespace

std::vector<Op> bessel_ops() {
  std::vector<Op> ops = elementwise_ops<Sinc>();
  ops.push_back(indexed_op<Iv>());
  ops.push_back(indexed_op<Ive>());
  ops.push_back(indexed_op<SphericalJn>());
  return ops;
}

}  // namespace buropt
