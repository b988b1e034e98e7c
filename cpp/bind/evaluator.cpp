// _core.Evaluator, an objective over data.
#include "bind/evaluator.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bind/arrays.h"
#include "bind/describe.h"
#include "bind/gil.h"
#include "bind/topics.h"
#include "exec/workspace.h"

namespace buropt {

using namespace nb::literals;

Evaluator::Evaluator(std::shared_ptr<Graph> graph,
                     const std::vector<std::tuple<std::string, std::int32_t, std::int64_t>>& inputs,
                     const std::vector<std::pair<std::int32_t, std::int64_t>>& outputs,
                     const std::vector<std::int64_t>& x_shape, const nb::list& dense,
                     const nb::list& csr, std::int64_t n_samples, int threads)
    : dtype_(graph->nodes.at(0).type.dtype),
      samples_(dtype_, n_samples, dense, csr),
      x_shape_(x_shape),
      threads_(threads) {
  std::vector<InputRole> roles;
  for (const auto& [kind, number, offset] : inputs) {
    roles.push_back(role_from(kind, number, offset));
  }
  std::vector<OutputRole> places;
  for (const auto& [vector, offset] : outputs) {
    places.push_back({vector, offset, 0});
    (vector == kValue ? has_value_ : has_gradient_) = true;
  }
  engine_ = std::make_shared<Engine>(graph, roles, places, samples_.data());
}

Evaluator::~Evaluator() = default;

/// Calls run(workspace), with the interpreter's lock if that is over soon for so many samples.
template <class F>
void Evaluator::with_workspace(std::int64_t count, const F& run) const {
  if (!engine_->is_short(count)) return without_gil([&] { run(nullptr); });
  if (workspace_ == nullptr) workspace_ = engine_->new_workspace();
  run(workspace_.get());
}

nb::object Evaluator::evaluate(nb::handle x, nb::handle idx, nb::handle weights,
                               nb::handle out) const {
  Shape shape;
  nb::object x_holder, idx_holder, weight_holder;
  const std::byte* at = point(x, shape, x_holder, "x");
  Batch batch = samples_.pick(idx, idx_holder);
  if (!weights.is_none()) batch.weights = samples_.read_weights(weights, batch, weight_holder);
  nb::object gradient;
  alignas(8) std::byte value[8];
  batch.outputs = std::move(outputs_);
  batch.outputs.resize(2);
  batch.outputs[kValue] = value;
  batch.outputs[kGradient] = nullptr;
  if (has_gradient_) {
    gradient = out.is_none() ? empty_array(shape, dtype_) : nb::borrow(out);
    batch.outputs[kGradient] = write_array(gradient, dtype_, shape, "out");
    if (!out.is_none()) {
      const std::int64_t item = size_of(dtype_);
      const std::array<Source, 3> read{
          {{"x", at, bytes()},
           {"idx", batch.idx, batch.idx == nullptr ? 0 : batch.count * 8},
           {"weights", batch.weights, batch.weights == nullptr ? 0 : batch.count * item}}};
      refuse_overlap("out", batch.outputs[kGradient], bytes(), read);
      refuse_overlap("out", batch.outputs[kGradient], bytes(), samples_.sources());
    }
  }
  run(at, scale_of(batch), std::span<const Batch>(&batch, 1));
  outputs_ = std::move(batch.outputs);
  if (!has_value_) return gradient;
  nb::object f = nb::float_(to_double(value, dtype_));
  if (!has_gradient_) return f;
  return nb::make_tuple(f, gradient);
}

void Evaluator::step(nb::handle x, double step_size, nb::handle idx, nb::handle weights) {
  Shape shape;
  nb::object x_holder, idx_holder, weight_holder;
  point(x, shape, x_holder, "x");
  std::byte* at = write_array(x, dtype_, shape, "x");
  Batch batch = samples_.pick(idx, idx_holder);
  if (!weights.is_none()) batch.weights = samples_.read_weights(weights, batch, weight_holder);
  refuse_overlap("x", at, bytes(), samples_.sources());
  const std::int64_t weight_bytes = batch.weights == nullptr ? 0 : batch.count * size_of(dtype_);
  refuse_overlap("x", at, bytes(),
                 std::array<Source, 1>{{{"weights", batch.weights, weight_bytes}}});
  // Calls of several Python threads use a gradient each; the interpreter's lock guards the list.
  Buffer gradient;
  if (!spare_.empty()) {
    gradient = std::move(spare_.back());
    spare_.pop_back();
  }
  gradient.reserve(static_cast<std::size_t>(bytes()));
  batch.outputs = {nullptr, gradient.data()};
  with_workspace(batch.count, [&](Engine::Workspace* workspace) {
    const std::array<const std::byte*, 1> vectors{at};
    const bool is_float = dtype_ == DType::float32;
    const double size = is_float ? static_cast<float>(step_size) : step_size;
    const Step step{at, dim(), size, kGradient};
    engine_->run(vectors, scale_of(batch), std::span<const Batch>(&batch, 1), threads_, &step,
                 workspace);
  });
  spare_.push_back(std::move(gradient));
}

nb::object Evaluator::evaluate_workers(nb::handle x, nb::handle idx, nb::handle weights,
                                       nb::handle out) const {
  Shape shape;
  nb::object x_holder, idx_holder;
  const std::byte* at = point(x, shape, x_holder, "x");
  const auto n = static_cast<std::int64_t>(workers_.size());
  nb::object values = empty_array(Shape{n}, dtype_);
  nb::object gradients = out.is_none() ? empty_array(Shape{n, dim()}, dtype_) : nb::borrow(out);
  std::byte* f = write_array(values, dtype_, Shape{n}, "values");
  std::byte* g = write_array(gradients, dtype_, Shape{n, dim()}, "out");
  if (!out.is_none()) {
    const std::array<Source, 1> read{{{"x", at, bytes()}}};
    refuse_overlap("out", g, n * bytes(), read);
    refuse_overlap("out", g, n * bytes(), samples_.sources());
  }
  std::vector<Batch> batches = workers_;
  if (!idx.is_none()) pick_for_workers(idx, idx_holder, batches);
  for (std::int64_t i = 0; i < n; ++i) {
    batches[static_cast<std::size_t>(i)].outputs = {f + i * size_of(dtype_), g + i * bytes()};
  }
  nb::object weight_holder;
  std::vector<std::byte> picked;
  if (!weights.is_none()) {
    Batch all;
    all.count = n_samples();
    deal_weights(samples_.read_weights(weights, all, weight_holder), batches, picked);
  }
  const double share = static_cast<double>(n) / static_cast<double>(n_samples());
  if (idx.is_none()) {
    run(at, share, batches);
  } else {
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const double ratio =
          static_cast<double>(workers_[i].count) / static_cast<double>(batches[i].count);
      run(at, share * ratio, std::span<const Batch>(&batches[i], 1));
    }
  }
  return has_value_ ? nb::object(nb::make_tuple(values, gradients)) : gradients;
}

void Evaluator::set_workers(const nb::list& shards) {
  if (!workers_.empty()) raise(ErrorKind::value, "buropt: the workers are already set");
  workers_ = samples_.split(shards);
}

void Evaluator::run(const std::byte* x, double scale, std::span<const Batch> batches) const {
  const std::array<const std::byte*, 1> vectors{x};
  std::int64_t count = 0;
  for (const Batch& batch : batches) count += batch.count;
  with_workspace(count, [&](Engine::Workspace* workspace) {
    engine_->run(vectors, scale, batches, threads_, nullptr, workspace);
  });
}

nb::dict Evaluator::describe() const { return buropt::describe(*engine_); }

const std::byte* Evaluator::point(nb::handle x, Shape& shape, nb::object& holder,
                                  const char* name) const {
  const std::byte* data = read_array(x, dtype_, shape, holder, name);
  if (!(shape == x_shape_)) check_shape(name, Shape{dim()}, shape);
  return data;
}

/// Points every batch at the weights of its samples, copied together where they do not lie in
/// order.
void Evaluator::deal_weights(const std::byte* weights, std::vector<Batch>& batches,
                             std::vector<std::byte>& picked) const {
  const auto item = static_cast<std::size_t>(size_of(dtype_));
  std::size_t total = 0;
  for (const Batch& batch : batches) total += static_cast<std::size_t>(batch.count);
  picked.resize(total * item);
  std::byte* next = picked.data();
  for (Batch& batch : batches) {
    if (batch.idx == nullptr) {
      batch.weights = weights + static_cast<std::size_t>(batch.first) * item;
      continue;
    }
    batch.weights = next;
    for (std::int64_t i = 0; i < batch.count; ++i, next += item) {
      std::memcpy(next, weights + static_cast<std::size_t>(batch.idx[i]) * item, item);
    }
  }
}

void Evaluator::pick_for_workers(nb::handle idx, nb::object& holder,
                                 std::vector<Batch>& batches) const {
  Shape shape;
  const std::int64_t* list = read_integers(idx, shape, holder, "idx");
  if (shape.rank() != 2 || shape[0] != static_cast<std::int64_t>(batches.size()) || shape[1] == 0) {
    raise(ErrorKind::value, "idx must have shape (n_workers, b) = (%zu, b), got %s", batches.size(),
          shape.str().c_str());
  }
  samples_.check_range(list, shape.size(), "idx");
  for (std::size_t i = 0; i < batches.size(); ++i) {
    batches[i].fixed = -1;
    batches[i].idx = list + static_cast<std::int64_t>(i) * shape[1];
    batches[i].count = shape[1];
  }
}

void bind_evaluator(nb::module_& m) {
  nb::class_<Evaluator>(m, "Evaluator", "Value and gradient of an objective over data.")
      .def(nb::init<std::shared_ptr<Graph>,
                    const std::vector<std::tuple<std::string, std::int32_t, std::int64_t>>&,
                    const std::vector<std::pair<std::int32_t, std::int64_t>>&,
                    const std::vector<std::int64_t>&, const nb::list&, const nb::list&,
                    std::int64_t, int>(),
           "graph"_a, "inputs"_a, "outputs"_a, "x_shape"_a, "dense"_a, "csr"_a, "n_samples"_a,
           "threads"_a)
      .def("evaluate", &Evaluator::evaluate, "x"_a, "idx"_a.none(), "weights"_a.none(),
           "out"_a.none(),
           nb::sig("def evaluate(self, x: object, idx: object, weights: object, out: object) -> "
                   "typing.Any"))
      .def("step", &Evaluator::step, "x"_a, "step_size"_a, "idx"_a.none(), "weights"_a.none(),
           nb::sig("def step(self, x: object, step_size: float, idx: object, weights: object) -> "
                   "None"))
      .def("evaluate_workers", &Evaluator::evaluate_workers, "x"_a, "idx"_a.none(),
           "weights"_a.none(), "out"_a.none(),
           nb::sig("def evaluate_workers(self, x: object, idx: object, weights: object, "
                   "out: object) -> typing.Any"))
      .def("set_workers", &Evaluator::set_workers, "shards"_a)
      .def("describe", &Evaluator::describe);
}

}  // namespace buropt
