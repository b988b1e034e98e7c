// The gradient of a linear model from the slopes of its samples.
#pragma once

#include <algorithm>

#include "inner/linear_model.h"

namespace buropt {

/// (1/n) sum of slopes_i a_i, (d,).
template <class T>
void mean_gradient(const LinearModel<T>& model, std::int64_t d, const T* slopes, T* mean) {
  std::fill_n(mean, d, T(0));
  for (std::int64_t i = 0; i < model.n_samples(); ++i) model.add(model.row(i), slopes[i], mean);
  const T share = T(1) / static_cast<T>(model.n_samples());
  for (std::int64_t j = 0; j < d; ++j) mean[j] *= share;
}

}  // namespace buropt
