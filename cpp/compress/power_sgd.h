// PowerSGD (Vogels, Karimireddy and Jaggi, arXiv:1905.13727): one step of subspace iteration, from
// random columns. P is an orthonormal basis of M Q, and M is projected on it: Q = M^T P.
//
// alpha = R / min(a, c) in expectation. The projection keeps at least ||M Q0||^2 for an orthonormal
// basis Q0 of the random columns, and E Q0 Q0^T = (R / c) I: signs and order of the rows of Q can
// be changed without changing its distribution.
#pragma once

#include "compress/low_rank.h"

namespace buropt {

struct PowerSGD {
  static constexpr const char* kName = "PowerSGD";
  static constexpr bool kOrthonormalP = true;

  static void factorize(const Factors& f, const Draw& draw, Scratch&) noexcept {
    RandomStream stream = draw.stream();
    for (std::size_t i = 0; i < f.columns * f.rank; ++i) f.q[i] = 2 * stream.uniform() - 1;
    multiply_right(f);
    orthonormalize(f);
    multiply_left(f);
  }

 private:
  /// Gram and Schmidt, twice for columns that are nearly dependent. A column that depends on those
  /// before it becomes 0: M is of lower rank, and nothing is missed.
  static void orthonormalize(const Factors& f) noexcept {
    for (std::size_t r = 0; r < f.rank; ++r) {
      const std::span<double> column = f.p_column(r);
      const double before = std::sqrt(product(column, column));
      for (int pass = 0; pass < 2; ++pass) {
        for (std::size_t s = 0; s < r; ++s) {
          add_multiple(-product(column, f.p_column(s)), f.p_column(s), column);
        }
      }
      const double after = std::sqrt(product(column, column));
      const double factor = after > 1e-12 * before ? 1 / after : 0;
      for (double& entry : column) entry *= factor;
    }
  }
};

}  // namespace buropt
