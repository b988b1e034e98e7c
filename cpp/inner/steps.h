// What the inner loops have in common: the samples of a call, and how far it goes.
#pragma once

#include <algorithm>
#include <cstdint>

namespace buropt {

/// The samples of the steps of one call, `batch` of them for each step.
struct Steps {
  const std::int64_t* idx;
  std::int64_t count;
  std::int64_t batch;

  const std::int64_t* of(std::int64_t step) const noexcept { return idx + step * batch; }
};

/// Lazy steps are caught up with on all coordinates after so many: a power of two.
inline constexpr std::int64_t kFlush = 1024;
/// Cheap steps between two looks at the clock.
inline constexpr std::int64_t kLook = 64;

/// Brings the samples that come soon nearer, for those in random order are in no cache.
template <class Model>
class Ahead {
 public:
  using T = typename Model::Number;
  /// numbers (n,): one for each sample that is read, or nullptr.
  Ahead(const Model& model, const Steps& steps, const T* numbers) noexcept
      : model_(model), steps_(steps), last_(steps.count * steps.batch - 1), numbers_(numbers) {}

  /// To be called before sample k of step t.
  void fetch(std::int64_t t, std::int64_t k) const noexcept {
    const std::int64_t now = t * steps_.batch + k;
    const std::int64_t soon = steps_.idx[std::min(now + 8, last_)];
    model_.prefetch_start(steps_.idx[std::min(now + 16, last_)]);
    model_.prefetch(soon);
    if (numbers_ != nullptr) __builtin_prefetch(numbers_ + soon);
  }

 private:
  const Model& model_;
  Steps steps_;
  std::int64_t last_;
  const T* numbers_;
};

}  // namespace buropt
