// Steps on linear models with l1 (and l2) terms: those on coordinates that a sparse sample does not
// touch are made up for later.
//
// Between two samples that have an entry in coordinate j, every step does the same to x_j:
//
//   x_j <- soft(rho x_j - step m_j, l1),  rho = 1 - step l2,  soft(y, t) = sign(y) max(|y| - t, 0),
//
// where l1 stands for the step times the weight, and m_j does not change. So k steps are one
// formula while the sign stays: x_j <- rho^k x_j + (1 + rho + ... + rho^{k-1}) c, c = -step m_j -+
// l1. The sequence is monotone, so the step at which the sign changes is found by bisection, and
// there are at most two such. After kFlush steps all coordinates are caught up with.
#pragma once

#include <vector>

#include "inner/deadline.h"
#include "inner/linear_model.h"
#include "inner/scaled.h"
#include "inner/steps.h"

namespace buropt {

/// The soft threshold: the proximal operator of t |y|.
template <class T>
T soft_threshold(T y, T t) noexcept {
  return y > t ? y - t : y < -t ? y + t : y == y ? T(0) : y;
}

template <class T>
class LazySteps {
 public:
  /// made (d,): the steps that each coordinate has made since the last flush.
  LazySteps(double step_size, double l2, double l1, std::int32_t* made)
      : step_(static_cast<T>(step_size)),
        rho_(static_cast<T>(1 - step_size * l2)),
        threshold_(static_cast<T>(step_size * l1)),
        made_(made) {
    double power = 1;
    double sum = 0;
    for (Geometric& g : geometric_) {
      g = {static_cast<T>(power), static_cast<T>(sum)};
      sum += power;
      power *= 1 - step_size * l2;
    }
  }

  /// One step of a coordinate whose gradient without the l2 term is g.
  T next(T x, T g) const noexcept { return soft_threshold(rho_ * x - step_ * g, threshold_); }

  /// x_j as it is after `now` steps.
  T caught_up(std::int64_t j, T x, T m, std::int32_t now) const noexcept {
    return after(x, m, now - made_[j]);
  }
  /// Notes that coordinate j has made so many steps.
  void stepped(std::int64_t j, std::int32_t now) const noexcept { made_[j] = now; }

 private:
  /// rho^k and 1 + rho + ... + rho^{k-1}.
  struct Geometric {
    T power;
    T sum;
  };

  /// k steps at once.
  T after(T x, T m, std::int32_t k) const noexcept {
    const T drift = -step_ * m;
    while (k > 0 && x == x) {
      if (x == T(0)) {
        // It stays, or leaves to one side for good.
        x = soft_threshold(drift, threshold_);
        if (x == T(0)) return x;
        --k;
        continue;
      }
      const T side = x > T(0) ? T(1) : T(-1);
      const T c = drift - side * threshold_;
      if (at(x, c, k) * side > T(0)) return at(x, c, k);
      // The last step on this side, and the one that leaves it.
      std::int32_t low = 0;
      std::int32_t high = k;
      while (high - low > 1) {
        const std::int32_t middle = low + (high - low) / 2;
        (at(x, c, middle) * side > T(0) ? low : high) = middle;
      }
      const T last = at(x, c, low);
      x = soft_threshold(rho_ * last + drift, threshold_);
      k -= low + 1;
    }
    return x;
  }

  T at(T x, T c, std::int32_t k) const noexcept {
    const Geometric& g = geometric_[static_cast<std::size_t>(k)];
    return g.power * x + g.sum * c;
  }

  T step_;
  T rho_;
  T threshold_;
  std::int32_t* made_;
  std::array<Geometric, kFlush + 1> geometric_;  ///< by number of steps
};

/// x (d,) after `now` steps of all coordinates.
template <class T>
void catch_up(std::int64_t d, const LazySteps<T>& lazy, std::int32_t now, const T* p, const T* q,
              T* x) noexcept {
  for (std::int64_t j = 0; j < d; ++j) x[j] = lazy.caught_up(j, p[j], q[j], now);
}

/// `corrected_steps` of one sample each, with an l1 term: soft thresholding by step l1 ends a step.
/// `since` counts the steps since the last flush.
template <Correction kind, class T>
std::int64_t thresholded_steps(LinearModel<T>& model, std::int64_t d, const Steps& steps,
                               const T* weights, double& since, const LazySteps<T>& lazy,
                               const Deadline& deadline, Kept<kind, T>* slopes, T* x,
                               Kept<kind, T>* q) {
  const T part = T(1) / static_cast<T>(model.n_samples());
  const Ahead<LinearModel<T>> ahead(model, steps, slopes);
  std::int64_t t = 0;
  while (t < steps.count) {
    ahead.fetch(t, 0);
    const std::int64_t i = *steps.of(t);
    const auto row = model.row(i);
    const auto now = static_cast<std::int32_t>(since);
    T z = 0;
    for (std::int64_t e = 0; e < row.size; ++e) {
      const std::int32_t j = row.columns[e];
      x[j] = lazy.caught_up(j, x[j], q[j], now);
      z += row.value(e) * x[j];
    }
    const T slope = model.slope(i, z);
    T change = slope;
    if constexpr (kind != Correction::none) change -= slopes[i];
    if constexpr (kind == Correction::table) slopes[i] = slope;
    const T weight = weights == nullptr ? T(1) : weights[t];
    for (std::int64_t e = 0; e < row.size; ++e) {
      const std::int32_t j = row.columns[e];
      const T direction = change * row.value(e);
      x[j] = lazy.next(x[j], weight * direction + q[j]);
      if constexpr (kind == Correction::table) q[j] += part * direction;
      lazy.stepped(j, now + 1);
    }
    ++t;
    if (++since == kFlush) {
      catch_up(d, lazy, kFlush, x, q, x);
      for (std::int64_t j = 0; j < d; ++j) lazy.stepped(j, 0);
      since = 0;
    }
    if (t % kLook == 0 && deadline.has_passed()) break;
  }
  return t;
}

}  // namespace buropt
