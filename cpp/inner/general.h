// Inner loops on any compiled loss: the steps of the methods' Python text, in the same order of
// rounding, with gradients from the oracle's program.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "exec/engine.h"
#include "inner/deadline.h"
#include "inner/steps.h"

namespace buropt {

/// A proximal operator that works coordinate by coordinate.
template <class T>
struct Prox {
  enum Kind { none, l1, elastic_net, box };
  Kind kind = none;
  double first = 0;   ///< weight of |x|_1, or the radius
  double second = 0;  ///< weight of |x|^2 / 2

  void apply(std::int64_t d, double step, T* x) const noexcept {
    const auto bound = static_cast<T>(kind == box ? first : step * first);
    if (kind == box) {
      for (std::int64_t j = 0; j < d; ++j)
        x[j] = x[j] < -bound ? -bound : x[j] > bound ? bound : x[j];
    } else if (kind != none) {
      const auto divisor = static_cast<T>(1 + step * second);
      for (std::int64_t j = 0; j < d; ++j) {
        const T rest = std::abs(x[j]) - bound;
        const T size = rest < T(0) ? T(0) : rest;
        const T sign = x[j] > T(0) ? T(1) : x[j] < T(0) ? T(-1) : x[j] == x[j] ? T(0) : x[j];
        x[j] = sign * size;
        if (kind == elastic_net) x[j] /= divisor;
      }
    }
  }
};

/// How the steps of Katyusha and its kin couple the points y, z and w.
struct Coupling {
  double theta1;  ///< weight of z
  double theta2;  ///< weight of w; y has the rest
  double step_size;
  double mu;
};

/// A mean of the points y of an epoch, of which the later ones have the larger weights.
template <class T>
struct RunningMean {
  T* mean;              ///< nullptr: there is none
  double growth;        ///< of a weight over the one before
  std::int64_t points;  ///< points that are in the mean already

  /// (1 + growth + ... + growth^i) / growth^i, without the overflow of its terms.
  static double total_weight(double growth, std::int64_t i) noexcept {
    if (growth == 1) return static_cast<double>(i) + 1;
    const double q = 1 / growth;
    return -std::expm1(static_cast<double>(i + 1) * std::log(q)) / (1 - q);
  }

  void add(std::int64_t d, const T* y) noexcept {
    if (mean == nullptr) return;
    const auto total = static_cast<T>(total_weight(growth, points++));
    for (std::int64_t j = 0; j < d; ++j) mean[j] += (y[j] - mean[j]) / total;
  }
};

/// Not for several threads at once.
template <class T>
class GeneralSteps {
 public:
  /// d: number of parameters; the engine's output is the gradient of the mean of a batch.
  GeneralSteps(const Engine& engine, std::int64_t d, int threads)
      : engine_(engine),
        d_(d),
        threads_(threads),
        g_(size()),
        h_(size()),
        old_(size()),
        x_(size()) {}

  /// x <- prox(x - step_t grad f_t(x)); weights: one for each listed sample, or nullptr. Returns
  /// the number of steps made before the deadline, at least one.
  std::int64_t sgd(const Steps& steps, const double* step_sizes, const T* weights,
                   const Prox<T>& prox, const Deadline& deadline, T* x) {
    return repeat(steps, deadline, [&](std::int64_t t) {
      grad(x, steps.of(t), steps.batch, at_step(weights, steps, t), g_.data());
      descend(step_sizes[t], prox, x);
    });
  }

  /// x <- prox(x - step (grad f_t(x) - grad f_t(w) + full)).
  std::int64_t svrg(const Steps& steps, double step_size, const T* weights, const Prox<T>& prox,
                    const Deadline& deadline, const T* w, const T* full, T* x) {
    return repeat(steps, deadline, [&](std::int64_t t) {
      difference(x, w, steps.of(t), steps.batch, at_step(weights, steps, t));
      for (std::int64_t j = 0; j < d_; ++j) g_[at(j)] += full[j];
      descend(step_size, prox, x);
    });
  }

  /// One sample a step: table (n, d) holds its gradients, mean (d,) their mean.
  std::int64_t saga(const Steps& steps, double step_size, const T* weights, std::int64_t n,
                    const Prox<T>& prox, const Deadline& deadline, T* x, T* table, T* mean) {
    const T count = static_cast<T>(n);
    return repeat(steps, deadline, [&](std::int64_t t) {
      T* row = table + *steps.of(t) * d_;
      grad(x, steps.of(t), 1, nullptr, h_.data());
      const T weight = weights == nullptr ? T(1) : weights[t];
      for (std::int64_t j = 0; j < d_; ++j) {
        old_[at(j)] = h_[at(j)] - row[j];
        g_[at(j)] = weight * old_[at(j)];
        row[j] = h_[at(j)];
      }
      for (std::int64_t j = 0; j < d_; ++j) {
        g_[at(j)] += mean[j];
        mean[j] += old_[at(j)] / count;
      }
      descend(step_size, prox, x);
    });
  }

  /// x <- x - step v, then v <- grad f_t(x) - grad f_t(x before) + v.
  std::int64_t sarah(const Steps& steps, double step_size, const Deadline& deadline, T* x, T* v) {
    return repeat(steps, deadline, [&](std::int64_t t) {
      std::copy_n(x, d_, old_.data());
      std::copy_n(v, d_, g_.data());
      descend(step_size, {}, x);
      difference(x, old_.data(), steps.of(t), steps.batch, nullptr);
      for (std::int64_t j = 0; j < d_; ++j) v[j] += g_[at(j)];
    });
  }

  /// x = theta1 z + theta2 w + (1 - theta1 - theta2) y, g = grad f_t(x) - grad f_t(w) + full,
  /// z+ = prox((z + step mu x - step g) / (1 + step mu)), y <- x + theta1 (z+ - z).
  std::int64_t coupled(const Steps& steps, const Coupling& c, const T* weights, const Prox<T>& prox,
                       const Deadline& deadline, const T* w, const T* full, T* y, T* z,
                       RunningMean<T> mean) {
    const double growth = 1 + c.step_size * c.mu;
    const auto divisor = static_cast<T>(growth);
    return repeat(steps, deadline, [&](std::int64_t t) {
      scale(c.theta1, z, x_);
      scale(c.theta2, w, old_);
      add(old_, x_.data());
      scale(1 - c.theta1 - c.theta2, y, old_);
      add(old_, x_.data());
      difference(x_.data(), w, steps.of(t), steps.batch, at_step(weights, steps, t));
      for (std::int64_t j = 0; j < d_; ++j) g_[at(j)] += full[j];
      std::copy_n(z, d_, old_.data());
      scale(c.step_size * c.mu, x_.data(), h_);
      add(h_, z);
      scale(c.step_size, g_.data(), h_);
      for (std::int64_t j = 0; j < d_; ++j) z[j] = (z[j] - h_[at(j)]) / divisor;
      prox.apply(d_, c.step_size / growth, z);
      for (std::int64_t j = 0; j < d_; ++j) old_[at(j)] = z[j] - old_[at(j)];
      scale(c.theta1, old_.data(), h_);
      for (std::int64_t j = 0; j < d_; ++j) y[j] = x_[at(j)] + h_[at(j)];
      mean.add(d_, y);
    });
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::size_t size() const { return at(d_); }

  static const T* at_step(const T* weights, const Steps& steps, std::int64_t t) noexcept {
    return weights == nullptr ? nullptr : weights + t * steps.batch;
  }

  template <class F>
  static std::int64_t repeat(const Steps& steps, const Deadline& deadline, const F& f) {
    std::int64_t done = 0;
    while (done < steps.count) {
      f(done++);
      if (deadline.has_passed()) break;
    }
    return done;
  }

  void grad(const T* x, const std::int64_t* idx, std::int64_t count, const T* weights, T* out) {
    Batch& batch = batch_[0];
    batch.idx = idx;
    batch.count = count;
    batch.weights = reinterpret_cast<const std::byte*>(weights);
    batch.outputs.assign({nullptr, reinterpret_cast<std::byte*>(out)});
    const std::array<const std::byte*, 1> vectors{reinterpret_cast<const std::byte*>(x)};
    engine_.run(vectors, 1.0 / static_cast<double>(count), batch_, threads_);
  }

  /// g <- grad f_t(x) - grad f_t(y).
  void difference(const T* x, const T* y, const std::int64_t* idx, std::int64_t count,
                  const T* weights) {
    grad(x, idx, count, weights, g_.data());
    grad(y, idx, count, weights, h_.data());
    for (std::int64_t j = 0; j < d_; ++j) g_[at(j)] -= h_[at(j)];
  }

  /// out <- factor v. As in `descend`, products and sums are loops of their own.
  static void scale(double factor, const T* v, std::vector<T>& out) noexcept {
    const auto c = static_cast<T>(factor);
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = c * v[j];
  }
  /// x += v.
  static void add(const std::vector<T>& v, T* x) noexcept {
    for (std::size_t j = 0; j < v.size(); ++j) x[j] += v[j];
  }

  /// x <- prox(x - step g). Products are rounded, zeros signed, as NumPy has them: a loop of its
  /// own leaves nothing to contract.
  void descend(double step_size, const Prox<T>& prox, T* x) noexcept {
    const auto step = static_cast<T>(step_size);
    for (T& g : g_) g *= step;
    for (std::int64_t j = 0; j < d_; ++j) x[j] -= g_[at(j)];
    prox.apply(d_, step_size, x);
  }

  const Engine& engine_;
  std::int64_t d_;
  int threads_;
  std::array<Batch, 1> batch_;
  std::vector<T> g_;
  std::vector<T> h_;
  std::vector<T> old_;
  std::vector<T> x_;
};

}  // namespace buropt
