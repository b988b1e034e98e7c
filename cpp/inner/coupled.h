// Steps of MiG on linear models with an l2 term, at O(nonzeros) each.
//
// MiG couples the moving point z with the snapshot w, x = theta z + (1 - theta) w, and takes SVRG's
// step of z with the gradient at x. With x in it, the l2 term has a part along z and one along w:
//
//   z <- rho z - step (c a_i + q)
//
// where q is constant between two snapshots. So z = a p + b q as in `scaled.h`. The weighted mean
// of the points z, in which the weights grow by `growth`, is the sum
//
//   sum <- sum / growth + z,   sum = e u + f p + g q,
//
// and what a step adds to p is taken back from u, since it is no part of the earlier points.
#pragma once

#include "inner/scaled.h"

namespace buropt {

/// The numbers in z = a p + b q and sum = e u + f p + g q, and the steps since the last flush.
struct CoupledScales {
  double a;
  double b;
  double e;
  double f;
  double g;
  double since;
};

/// theta, and the constants of the steps above.
struct CoupledRule {
  double theta;
  double step;
  double rho;
  double growth;

  /// MiG's step size and mu, for an l2 term.
  static CoupledRule make(double theta, double step_size, double mu, double l2) noexcept {
    const double growth = 1 + step_size * mu;
    return {theta, step_size / growth, (1 + step_size * theta * (mu - l2)) / growth, growth};
  }
};

/// Steps z <- rho z - step (mean over the step's samples of w_i (phi'_i(a_i'x) - slopes_i) a_i +
/// q); the sum follows. slopes (n,) are those at w (d,). Returns the number of steps made.
template <class T>
std::int64_t coupled_steps(LinearModel<T>& model, std::int64_t d, const Steps& steps,
                           const T* weights, const CoupledRule& rule, CoupledScales& s,
                           const Deadline& deadline, const T* slopes, const T* w, const T* q, T* p,
                           T* u) {
  const double flush = steps_to_flush(std::min(rule.rho, 1 / rule.growth));
  const double share = 1.0 / static_cast<double>(steps.batch);
  std::vector<T> changes(static_cast<std::size_t>(steps.batch));
  const Ahead<LinearModel<T>> ahead(model, steps, slopes);
  Interleaved<T> moving(d, p, u), fixed(d, q, w);
  std::int64_t t = 0;
  while (t < steps.count) {
    const std::int64_t* samples = steps.of(t);
    const auto of_p = static_cast<T>(rule.theta * s.a), of_q = static_cast<T>(rule.theta * s.b);
    const auto of_w = static_cast<T>(1 - rule.theta);
    for (std::int64_t k = 0; k < steps.batch; ++k) {
      const std::int64_t i = samples[k];
      ahead.fetch(t, k);
      const auto row = model.row(i);
      const TwoOf<T> at_rest = model.product(row, fixed.data());
      const TwoOf<T> moved = model.product(row, moving.data());
      const T x = of_p * moved[0] + (of_q * at_rest[0] + of_w * at_rest[1]);
      changes[static_cast<std::size_t>(k)] = model.slope(i, x) - slopes[i];
    }
    s.a *= rule.rho;
    s.b = rule.rho * s.b - rule.step;
    s.e /= rule.growth;
    s.f /= rule.growth;
    const double into_p = -rule.step * share / s.a;
    const double into_u = -into_p * s.f / s.e;
    for (std::int64_t k = 0; k < steps.batch; ++k) {
      const std::int64_t i = samples[k];
      const double weight = weights == nullptr ? 1 : weights[t * steps.batch + k];
      const double change = weight * changes[static_cast<std::size_t>(k)];
      model.add(model.row(i), static_cast<T>(into_p * change), static_cast<T>(into_u * change),
                moving.data());
    }
    s.f += s.a;
    s.g = s.g / rule.growth + s.b;
    ++t;
    if (++s.since == flush) {
      for (std::int64_t j = 0; j < d; ++j) {
        TwoOf<T>& pu = moving.data()[j];
        pu = TwoOf<T>{
            static_cast<T>(s.a) * pu[0] + static_cast<T>(s.b) * q[j],
            static_cast<T>(s.e) * pu[1] + static_cast<T>(s.f) * pu[0] + static_cast<T>(s.g) * q[j]};
      }
      s = {1, 0, 1, 0, 0, 0};
    }
    if (t % kLook == 0 && deadline.has_passed()) break;
  }
  moving.copy_first(p);
  moving.copy_second(u);
  return t;
}

}  // namespace buropt
