// SARAH's and PAGE's recursive gradient (arXiv 1703.00102, 2008.10898) on a generalized linear
// model.
#pragma once

#include <vector>

#include "inner/linear_model.h"

namespace buropt {

/// Steps on coordinates that no sample touches: v <- rho v, x <- x - step v, rho = 1 - step l2.
template <class T>
class RecursiveSteps {
 public:
  RecursiveSteps(std::int64_t d, std::int64_t steps, T step_size, T l2)
      : step_(step_size), l2_(l2), done_(static_cast<std::size_t>(d), 0) {
    double power = 1;
    double sum = 0;
    for (std::int64_t k = 0; k <= steps; ++k) {
      geometric_.push_back({static_cast<T>(power), static_cast<T>(sum)});
      power *= 1.0 - static_cast<double>(step_size) * static_cast<double>(l2);
      sum += power;
    }
  }

  void catch_up(std::int64_t j, T& x, T& v, std::int32_t now) noexcept {
    std::int32_t& done = done_[static_cast<std::size_t>(j)];
    const Geometric& g = geometric_[static_cast<std::size_t>(now - done)];
    done = now;
    x -= step_ * g.sum * v;
    v *= g.power;
  }
  /// The step itself, of a coordinate whose gradient without the l2 term has changed.
  void step(std::int64_t j, T& x, T& v, T change, std::int32_t now) noexcept {
    v = (T(1) - step_ * l2_) * v + change;
    x -= step_ * v;
    done_[static_cast<std::size_t>(j)] = now + 1;
  }
  bool is_behind(std::int64_t j, std::int32_t now) const noexcept {
    return done_[static_cast<std::size_t>(j)] <= now;
  }
  void flush(T* x, T* v, std::int32_t now) noexcept {
    for (std::size_t j = 0; j < done_.size(); ++j) {
      catch_up(static_cast<std::int64_t>(j), x[j], v[j], now);
      done_[j] = 0;
    }
  }

 private:
  /// rho^k and rho + ... + rho^k.
  struct Geometric {
    T power;
    T sum;
  };

  T step_;
  T l2_;
  std::vector<Geometric> geometric_;  ///< by number of steps
  std::vector<std::int32_t> done_;    ///< by coordinate: steps made
};

/// Steps with v the gradient estimate at x's predecessor. For each row of samples (steps, batch):
///
///   v <- v + mean over the row of (phi'_i(a_i'x) - phi'_i(a_i'(x + step v))) a_i + l2 (-step v),
///   x <- x - step v,
///
/// since x + step v is the point before x. Costs O(nonzeros of the rows); the other coordinates
/// wait. The caller has made the first step of an epoch: v = grad f(x_0), x = x_0 - step v.
template <class T>
void sarah(LinearModel<T>& model, T l2, T step_size, std::int64_t d,
           std::span<const std::int64_t> samples, std::int64_t batch, T* x, T* v) {
  const auto steps = static_cast<std::int32_t>(static_cast<std::int64_t>(samples.size()) / batch);
  RecursiveSteps<T> lazy(d, steps, step_size, l2);
  std::vector<T> change(static_cast<std::size_t>(d), T(0));
  const T share = T(1) / static_cast<T>(batch);
  for (std::int32_t t = 0; t < steps; ++t) {
    const auto picked =
        samples.subspan(static_cast<std::size_t>(t * batch), static_cast<std::size_t>(batch));
    for (const std::int64_t i : picked) {
      const auto row = model.row(i);
      T here = 0;
      T before = 0;
      for (std::int64_t e = 0; e < row.size; ++e) {
        const std::int32_t j = row.columns[e];
        lazy.catch_up(j, x[j], v[j], t);
        here += row.value(e) * x[j];
        before += row.value(e) * (x[j] + step_size * v[j]);
      }
      const T difference = (model.slope(i, here) - model.slope(i, before)) * share;
      for (std::int64_t e = 0; e < row.size; ++e) {
        change[static_cast<std::size_t>(row.columns[e])] += difference * row.value(e);
      }
    }
    for (const std::int64_t i : picked) {
      const auto row = model.row(i);
      for (std::int64_t e = 0; e < row.size; ++e) {
        const std::int32_t j = row.columns[e];
        if (!lazy.is_behind(j, t)) continue;
        T& sum = change[static_cast<std::size_t>(j)];
        lazy.step(j, x[j], v[j], sum, t);
        sum = 0;
      }
    }
  }
  lazy.flush(x, v, steps);
}

}  // namespace buropt
