// Steps on linear models with an l2 term, at O(nonzeros) each: what every coordinate does alike is
// two numbers.
//
// Between two flushes the iterate is x = a p + b q with vectors p and q and numbers a and b. A step
// on coordinates that the sample does not touch changes the numbers alone, a touched coordinate is
// brought to what it has to be by an addition to p (and q):
//
//   SGD, SVRG, SAGA   x <- rho x - step (c a_i + m), rho = 1 - step l2:
//                     q = m, a <- rho a, b <- rho b - step, p += -(step / a) c a_i
//   SARAH, PAGE       x <- x - step v, v <- rho v + c a_i:
//                     v = a q, x = p + b q, b <- b - step a, a <- rho a, q += (c / a) a_i, and
//                     p -= b (c / a) a_i, so that x stays
//
// After kFlush steps, or earlier if a would become small, p becomes x: then nothing is lost to
// cancellation. All this is a function of the state, so it does not matter in how many calls the
// steps are made.
#pragma once

#include <cmath>

#include "inner/deadline.h"
#include "inner/linear_model.h"
#include "inner/steps.h"

namespace buropt {

/// The numbers a and b, and the steps since the last flush.
struct Scales {
  double a;
  double b;
  double since;
};

/// Steps between two flushes for this rho = 1 - step l2.
inline double steps_to_flush(double rho) noexcept {
  double steps = kFlush;
  while (steps > 1 && std::pow(rho, steps) < 1e-6) steps /= 2;
  return steps;
}

/// out <- a p + b q.
template <class T>
void combine(std::int64_t d, const Scales& s, const T* p, const T* q, T* out) noexcept {
  const auto a = static_cast<T>(s.a), b = static_cast<T>(s.b);
  for (std::int64_t j = 0; j < d; ++j) out[j] = a * p[j] + b * q[j];
}

/// SARAH's x <- p + b q and v <- a q.
template <class T>
void separate(std::int64_t d, const Scales& s, const T* p, const T* q, T* x, T* v) noexcept {
  const auto a = static_cast<T>(s.a), b = static_cast<T>(s.b);
  for (std::int64_t j = 0; j < d; ++j) {
    x[j] = p[j] + b * q[j];
    v[j] = a * q[j];
  }
}

/// Two vectors side by side while a kernel works on them, and apart again at its end.
template <class T>
class Interleaved {
 public:
  Interleaved(std::int64_t d, const T* p, const T* q) : pairs_(static_cast<std::size_t>(d)) {
    for (std::size_t j = 0; j < pairs_.size(); ++j) pairs_[j] = TwoOf<T>{p[j], q[j]};
  }

  TwoOf<T>* data() noexcept { return pairs_.data(); }
  /// p <- a p + b q.
  void combine(const Scales& s) noexcept {
    const auto a = static_cast<T>(s.a), b = static_cast<T>(s.b);
    for (TwoOf<T>& pair : pairs_) pair[0] = a * pair[0] + b * pair[1];
  }
  /// p <- p + b q, q <- a q.
  void separate(const Scales& s) noexcept {
    const auto a = static_cast<T>(s.a), b = static_cast<T>(s.b);
    for (TwoOf<T>& pair : pairs_) pair = TwoOf<T>{pair[0] + b * pair[1], a * pair[1]};
  }
  void copy_first(T* p) const noexcept {
    for (std::size_t j = 0; j < pairs_.size(); ++j) p[j] = pairs_[j][0];
  }
  void copy_second(T* q) const noexcept {
    for (std::size_t j = 0; j < pairs_.size(); ++j) q[j] = pairs_[j][1];
  }

 private:
  std::vector<TwoOf<T>> pairs_;
};

/// Where SGD has nothing to add, SVRG the slopes at the snapshot, and SAGA its table: `slopes` (n,)
/// or nullptr; q (d,) is their mean gradient, 0 for SGD.
enum class Correction { none, anchor, table };
template <Correction kind, class T>
using Kept = std::conditional_t<kind == Correction::table, T, const T>;

/// Steps x <- x - step (mean over the step's samples of w_i (phi'_i(a_i'x) - slopes_i) a_i + q + l2
/// x); SAGA's table and mean follow. Returns the number of steps made.
template <Correction kind, class T>
std::int64_t corrected_steps(LinearModel<T>& model, std::int64_t d, const Steps& steps,
                             const T* weights, double step_size, double l2, Scales& s,
                             const Deadline& deadline, Kept<kind, T>* slopes, T* p,
                             Kept<kind, T>* q) {
  const double rho = 1 - step_size * l2;
  const double flush = steps_to_flush(rho);
  std::vector<T> changes(static_cast<std::size_t>(steps.batch));
  const double share = 1.0 / static_cast<double>(steps.batch);
  const double part = 1.0 / static_cast<double>(model.n_samples());
  const Ahead<LinearModel<T>> ahead(model, steps, slopes);
  Interleaved<T> both(d, p, q);
  std::int64_t t = 0;
  while (t < steps.count) {
    const std::int64_t* samples = steps.of(t);
    for (std::int64_t k = 0; k < steps.batch; ++k) {
      const std::int64_t i = samples[k];
      ahead.fetch(t, k);
      T z;
      if constexpr (kind == Correction::none) {
        z = static_cast<T>(s.a) * model.product(model.row(i), p);
      } else {
        const TwoOf<T> products = model.product(model.row(i), both.data());
        z = static_cast<T>(s.a) * products[0] + static_cast<T>(s.b) * products[1];
      }
      const T slope = model.slope(i, z);
      T& change = changes[static_cast<std::size_t>(k)];
      change = slope;
      if constexpr (kind != Correction::none) change -= slopes[i];
      if constexpr (kind == Correction::table) slopes[i] = slope;
    }
    s.b = rho * s.b - step_size;
    s.a *= rho;
    const double into_p = -step_size * share / s.a;
    for (std::int64_t k = 0; k < steps.batch; ++k) {
      const std::int64_t i = samples[k];
      const T change = changes[static_cast<std::size_t>(k)];
      const double weight = weights == nullptr ? 1 : weights[t * steps.batch + k];
      if constexpr (kind == Correction::table) {
        // q has its new value in x already, so p gives back what that is too much.
        model.add(model.row(i), static_cast<T>((into_p * weight - part * s.b / s.a) * change),
                  static_cast<T>(part * change), both.data());
      } else if constexpr (kind == Correction::anchor) {
        model.add(model.row(i), static_cast<T>(into_p * weight * change), T(0), both.data());
      } else {
        model.add(model.row(i), static_cast<T>(into_p * weight * change), p);
      }
    }
    ++t;
    if (++s.since == flush) {
      if constexpr (kind == Correction::none) {
        combine(d, s, p, q, p);
      } else {
        both.combine(s);
      }
      s = {1, 0, 0};
    }
    if (t % kLook == 0 && deadline.has_passed()) break;
  }
  if constexpr (kind != Correction::none) both.copy_first(p);
  if constexpr (kind == Correction::table) both.copy_second(q);
  return t;
}

/// Steps x <- x - step v, v <- v + mean over the step's samples of (phi'_i(a_i'x) - phi'_i(a_i'x
/// before)) a_i - l2 step v before. x = p + b q, v = a q.
template <class T>
std::int64_t recursive_steps(LinearModel<T>& model, std::int64_t d, const Steps& steps,
                             double step_size, double l2, Scales& s, const Deadline& deadline, T* p,
                             T* q) {
  const double rho = 1 - step_size * l2;
  const double flush = steps_to_flush(rho);
  std::vector<T> changes(static_cast<std::size_t>(steps.batch));
  const double share = 1.0 / static_cast<double>(steps.batch);
  const Ahead<LinearModel<T>> ahead(model, steps, nullptr);
  Interleaved<T> both(d, p, q);
  std::int64_t t = 0;
  while (t < steps.count) {
    const std::int64_t* samples = steps.of(t);
    const double before = s.b;
    s.b -= step_size * s.a;
    s.a *= rho;
    for (std::int64_t k = 0; k < steps.batch; ++k) {
      const std::int64_t i = samples[k];
      ahead.fetch(t, k);
      const TwoOf<T> z = model.product(model.row(i), both.data());
      changes[static_cast<std::size_t>(k)] = model.slope(i, z[0] + static_cast<T>(s.b) * z[1]) -
                                             model.slope(i, z[0] + static_cast<T>(before) * z[1]);
    }
    for (std::int64_t k = 0; k < steps.batch; ++k) {
      const double into_q = share / s.a * changes[static_cast<std::size_t>(k)];
      model.add(model.row(samples[k]), static_cast<T>(-s.b * into_q), static_cast<T>(into_q),
                both.data());
    }
    ++t;
    if (++s.since == flush) {
      both.separate(s);
      s = {1, 0, 0};
    }
    if (t % kLook == 0 && deadline.has_passed()) break;
  }
  both.copy_first(p);
  both.copy_second(q);
  return t;
}

}  // namespace buropt
