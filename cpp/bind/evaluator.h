// An objective over data, as the bindings call it.
#pragma once

#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "bind/samples.h"
#include "exec/engine.h"

namespace buropt {

/// Vector numbers of an evaluator's outputs.
inline constexpr std::int32_t kValue = 0;
inline constexpr std::int32_t kGradient = 1;

/// The mean over a batch weighs every sample by this; without data there is one evaluation.
inline double scale_of(const Batch& batch) {
  return 1.0 / static_cast<double>(std::max<std::int64_t>(1, batch.count));
}

/// An objective: value and gradient over samples of the data, for one parameter vector.
class Evaluator {
 public:
  Evaluator(std::shared_ptr<Graph> graph,
            const std::vector<std::tuple<std::string, std::int32_t, std::int64_t>>& inputs,
            const std::vector<std::pair<std::int32_t, std::int64_t>>& outputs,
            const std::vector<std::int64_t>& x_shape, const nb::list& dense, const nb::list& csr,
            std::int64_t n_samples, int threads);
  ~Evaluator();
  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// f, gradient or both, as the graph has them.
  nb::object evaluate(nb::handle x, nb::handle idx, nb::handle weights, nb::handle out) const;

  /// x -= step_size * gradient.
  void step(nb::handle x, double step_size, nb::handle idx, nb::handle weights);

  /// Values (n,) and gradients (n, dim) of the workers' functions; idx (n, b) picks samples, and
  /// weights (n_samples,) are those of all samples.
  nb::object evaluate_workers(nb::handle x, nb::handle idx, nb::handle weights,
                              nb::handle out) const;

  /// Worker i has the samples of shards[i]. Once only: what is kept of a fixed batch stays.
  void set_workers(const nb::list& shards);

  void run(const std::byte* x, double scale, std::span<const Batch> batches) const;

  nb::dict describe() const;

  std::int64_t dim() const { return x_shape_.size(); }
  std::int64_t bytes() const { return dim() * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  const Samples& samples() const { return samples_; }
  bool has_gradient() const { return has_gradient_; }
  std::int64_t n_samples() const { return samples_.n(); }

  /// The memory of a parameter vector: (dim,), or the shape of the start point.
  const std::byte* point(nb::handle x, Shape& shape, nb::object& holder, const char* name) const;

 private:
  template <class F>
  void with_workspace(std::int64_t count, const F& run) const;
  void deal_weights(const std::byte* weights, std::vector<Batch>& batches,
                    std::vector<std::byte>& picked) const;
  void pick_for_workers(nb::handle idx, nb::object& holder, std::vector<Batch>& batches) const;

  std::shared_ptr<Engine> engine_;
  std::vector<Batch> workers_;
  DType dtype_;
  Samples samples_;
  Shape x_shape_;
  int threads_;
  /// For calls that keep the interpreter's lock, of which there is one at a time.
  mutable std::unique_ptr<Engine::Workspace> workspace_;
  std::vector<Buffer> spare_;  ///< gradients for step
  /// Memory for the list of a call's outputs; of several at once, one has it.
  mutable std::vector<std::byte*> outputs_;
  bool has_value_ = false;
  bool has_gradient_ = false;
};

}  // namespace buropt
