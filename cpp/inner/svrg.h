// SVRG's inner loop (Johnson, Zhang, NIPS 2013) on a generalized linear model.
#pragma once

#include "inner/lazy.h"
#include "inner/linear_model.h"

namespace buropt {

/// One step for each listed sample i:
///
///   x <- prox(x - step ((phi'_i(a_i'x) - anchor_i) a_i + mean + l2 x)),
///
/// where anchor (n,) are the slopes at the snapshot and mean (d,) is their mean gradient. Costs
/// O(nonzeros of the row); the other coordinates wait.
template <bool has_l1, class T>
void svrg(LinearModel<T>& model, const Penalty<T>& penalty, T step_size, std::int64_t d,
          std::span<const std::int64_t> samples, const T* anchor, const T* mean, T* x) {
  const auto steps = static_cast<std::int32_t>(samples.size());
  LazySteps<T, has_l1> lazy(d, steps, step_size, penalty.l2, penalty.l1);
  for (std::int32_t t = 0; t < steps; ++t) {
    const std::int64_t i = samples[static_cast<std::size_t>(t)];
    const auto soon = static_cast<std::size_t>(std::min(t + 4, steps - 1));
    model.prefetch_start(samples[static_cast<std::size_t>(std::min(t + 8, steps - 1))]);
    model.prefetch(samples[soon]);
    __builtin_prefetch(anchor + samples[soon]);
    const auto row = model.row(i);
    T z = 0;
    for (std::int64_t e = 0; e < row.size; ++e) {
      const std::int32_t j = row.columns[e];
      x[j] = lazy.caught_up(j, x[j], mean[j], t);
      z += row.value(e) * x[j];
    }
    const T change = model.slope(i, z) - anchor[i];
    for (std::int64_t e = 0; e < row.size; ++e) {
      const std::int32_t j = row.columns[e];
      x[j] = lazy.next(x[j], change * row.value(e) + mean[j]);
      lazy.stepped(j, t);
    }
  }
  lazy.flush(x, mean, steps);
}

/// The slopes at x (n,), and their mean gradient without the penalty's (d,).
template <class T>
void slopes_at(LinearModel<T>& model, std::int64_t d, const T* x, T* slopes, T* mean) {
  std::fill_n(mean, d, T(0));
  for (std::int64_t i = 0; i < model.n_samples(); ++i) {
    const auto row = model.row(i);
    slopes[i] = model.slope(i, model.product(row, x));
    for (std::int64_t e = 0; e < row.size; ++e) mean[row.columns[e]] += slopes[i] * row.value(e);
  }
  const T share = T(1) / static_cast<T>(model.n_samples());
  for (std::int64_t j = 0; j < d; ++j) mean[j] *= share;
}

}  // namespace buropt
