// Lazy updates: steps on coordinates that a sparse sample does not touch, made up for later.
//
// Between two samples that have an entry in coordinate j, every step does the same to x_j:
//
//   x_j <- soft(rho x_j - step m_j, l1),  rho = 1 - step l2,  soft(y, t) = sign(y) max(|y| - t, 0),
//
// where l1 stands for the step times the weight, and m_j does not change. So k steps are one
// formula while the sign stays: x_j <- rho^k x_j + (1 + rho + ... + rho^{k-1}) c, c = -step m_j -+
// l1. The sequence is monotone, so the step at which the sign changes is found by bisection, and
// there are at most two such.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace buropt {

/// The soft threshold: the proximal operator of t |y|.
template <class T>
T soft_threshold(T y, T t) noexcept {
  return y > t ? y - t : y < -t ? y + t : y == y ? T(0) : y;
}

template <class T, bool has_l1>
class LazySteps {
 public:
  /// For at most `steps` steps between two flushes; m (d,) is read at the time of a catch-up.
  LazySteps(std::int64_t d, std::int64_t steps, T step_size, T l2, T l1)
      : step_(step_size),
        rho_(T(1) - step_size * l2),
        threshold_(step_size * l1),
        done_(static_cast<std::size_t>(d), 0) {
    geometric_.reserve(static_cast<std::size_t>(steps) + 1);
    double power = 1;
    double sum = 0;
    const double rho = 1.0 - static_cast<double>(step_size) * static_cast<double>(l2);
    for (std::int64_t k = 0; k <= steps; ++k) {
      geometric_.push_back({static_cast<T>(power), static_cast<T>(sum)});
      sum += power;
      power *= rho;
    }
  }

  T rho() const noexcept { return rho_; }
  T step_size() const noexcept { return step_; }

  /// One step of a coordinate whose gradient without the l2 term is g.
  T next(T x, T g) const noexcept {
    const T y = rho_ * x - step_ * g;
    return has_l1 ? soft_threshold(y, threshold_) : y;
  }

  /// x_j as it is before step `now`.
  T caught_up(std::int64_t j, T x, T m, std::int32_t now) noexcept {
    std::int32_t& done = done_[static_cast<std::size_t>(j)];
    const std::int32_t behind = now - done;
    done = now;
    return after(x, m, behind);
  }
  /// Notes that coordinate j has made step `now` itself.
  void stepped(std::int64_t j, std::int32_t now) noexcept {
    done_[static_cast<std::size_t>(j)] = now + 1;
  }

  /// Catches up with all coordinates, after which step 0 is next.
  void flush(T* x, const T* m, std::int32_t now) noexcept {
    for (std::size_t j = 0; j < done_.size(); ++j) {
      const std::int32_t behind = now - done_[j];
      if (behind > 0) x[j] = after(x[j], m[j], behind);
      done_[j] = 0;
    }
  }

 private:
  /// rho^k and 1 + rho + ... + rho^{k-1}.
  struct Geometric {
    T power;
    T sum;
  };

  /// k steps at once.
  T after(T x, T m, std::int32_t k) const noexcept {
    const T drift = -step_ * m;
    if (!has_l1 || k == 0) return at(x, drift, k);
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
  std::vector<Geometric> geometric_;  ///< by number of steps
  std::vector<std::int32_t> done_;    ///< by coordinate: steps made
};

}  // namespace buropt
