// SAGA (Defazio, Bach, Lacoste-Julien, arXiv 1407.0202) on a generalized linear model.
#pragma once

#include "inner/lazy.h"
#include "inner/linear_model.h"

namespace buropt {

/// SAGA's memory: of sample i the number phi'_i that its last gradient had, and their mean
/// gradient.
template <class T>
struct SagaState {
  T* x;      ///< (d,)
  T* table;  ///< (n,)
  T* mean;   ///< (d,), (1/n) sum table_i a_i
};

/// One step for each listed sample i:
///
///   x <- prox(x - step ((phi'_i(a_i'x) - table_i) a_i + mean + l2 x)),  table_i <- phi'_i(a_i'x),
///
/// with the mean updated after it. Costs O(nonzeros of the row); the other coordinates wait.
template <bool has_l1, class T>
void saga(LinearModel<T>& model, const Penalty<T>& penalty, T step_size, std::int64_t d,
          std::span<const std::int64_t> samples, const SagaState<T>& s) {
  const auto steps = static_cast<std::int32_t>(samples.size());
  LazySteps<T, has_l1> lazy(d, steps, step_size, penalty.l2, penalty.l1);
  const T share = T(1) / static_cast<T>(model.n_samples());
  for (std::int32_t t = 0; t < steps; ++t) {
    const std::int64_t i = samples[static_cast<std::size_t>(t)];
    const auto soon = static_cast<std::size_t>(std::min(t + 4, steps - 1));
    model.prefetch_start(samples[static_cast<std::size_t>(std::min(t + 8, steps - 1))]);
    model.prefetch(samples[soon]);
    __builtin_prefetch(s.table + samples[soon]);
    const auto row = model.row(i);
    T z = 0;
    for (std::int64_t e = 0; e < row.size; ++e) {
      const std::int32_t j = row.columns[e];
      s.x[j] = lazy.caught_up(j, s.x[j], s.mean[j], t);
      z += row.value(e) * s.x[j];
    }
    const T slope = model.slope(i, z);
    const T change = slope - s.table[i];
    for (std::int64_t e = 0; e < row.size; ++e) {
      const std::int32_t j = row.columns[e];
      const T direction = change * row.value(e);
      s.x[j] = lazy.next(s.x[j], direction + s.mean[j]);
      s.mean[j] += direction * share;
      lazy.stepped(j, t);
    }
    s.table[i] = slope;
  }
  lazy.flush(s.x, s.mean, steps);
}

}  // namespace buropt
