// _core.Evaluator, an objective over data, and _core.BoundCall, a call of it on fixed arrays.
#include "exec/engine.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <tuple>

#include "bind/arrays.h"
#include "bind/describe.h"
#include "bind/gil.h"
#include "bind/samples.h"
#include "bind/slots.h"
#include "bind/topics.h"
#include "math/step.h"

namespace buropt {
namespace {

using namespace nb::literals;

/// Vector numbers of an evaluator's outputs.
constexpr std::int32_t kValue = 0;
constexpr std::int32_t kGradient = 1;

/// The mean over a batch weighs every sample by this; without data there is one evaluation.
double scale_of(const Batch& batch) {
  return 1.0 / static_cast<double>(std::max<std::int64_t>(1, batch.count));
}

/// An objective: value and gradient over samples of the data, for one parameter vector.
class Evaluator {
 public:
  Evaluator(std::shared_ptr<Graph> graph,
            const std::vector<std::tuple<std::string, std::int32_t, std::int64_t>>& inputs,
            const std::vector<std::pair<std::int32_t, std::int64_t>>& outputs,
            const std::vector<std::int64_t>& x_shape, const nb::list& dense, const nb::list& csr,
            std::int64_t n_samples, int threads)
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

  Evaluator(const Evaluator&) = delete;
  Evaluator& operator=(const Evaluator&) = delete;

  /// f, gradient or both, as the graph has them.
  nb::object evaluate(nb::handle x, nb::handle idx, nb::handle weights, nb::handle out) const {
    Shape shape;
    nb::object x_holder, idx_holder, weight_holder;
    const std::byte* at = point(x, shape, x_holder, "x");
    Batch batch = samples_.pick(idx, idx_holder);
    if (!weights.is_none()) batch.weights = samples_.read_weights(weights, batch, weight_holder);
    nb::object gradient;
    alignas(8) std::byte value[8];
    batch.outputs = std::move(outputs_);
    batch.outputs.assign({value, nullptr});
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

  /// x -= step_size * gradient.
  void step(nb::handle x, double step_size, nb::handle idx, nb::handle weights) {
    Shape shape;
    nb::object x_holder, idx_holder, weight_holder;
    point(x, shape, x_holder, "x");
    std::byte* at = write_array(x, dtype_, shape, "x");
    Batch batch = samples_.pick(idx, idx_holder);
    if (!weights.is_none()) batch.weights = samples_.read_weights(weights, batch, weight_holder);
    refuse_overlap("x", at, bytes(), samples_.sources());
    // Calls of several Python threads use a gradient each; the interpreter's lock guards the list.
    Buffer gradient;
    if (!spare_.empty()) {
      gradient = std::move(spare_.back());
      spare_.pop_back();
    }
    gradient.reserve(static_cast<std::size_t>(bytes()));
    batch.outputs = {nullptr, gradient.data()};
    const auto run = [&] {
      const std::array<const std::byte*, 1> vectors{at};
      engine_->run(vectors, scale_of(batch), std::span<const Batch>(&batch, 1), threads_);
      dispatch(dtype_, [&](auto zero) {
        using T = decltype(zero);
        subtract_scaled(dim(), static_cast<T>(step_size),
                        reinterpret_cast<const T*>(gradient.data()), reinterpret_cast<T*>(at),
                        threads_);
      });
    };
    if (engine_->is_short(batch.count))
      run();
    else
      without_gil(run);
    spare_.push_back(std::move(gradient));
  }

  /// Values (n,) and gradients (n, dim) of the workers' functions; idx (n, b) picks samples, and
  /// weights (n_samples,) are those of all samples.
  nb::object evaluate_workers(nb::handle x, nb::handle idx, nb::handle weights,
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

  /// Worker i has the samples of shards[i]. Once only: what is kept of a fixed batch stays.
  void set_workers(const nb::list& shards) {
    if (!workers_.empty()) raise(ErrorKind::value, "buropt: the workers are already set");
    workers_ = samples_.split(shards);
  }

  void run(const std::byte* x, double scale, std::span<const Batch> batches) const {
    const std::array<const std::byte*, 1> vectors{x};
    std::int64_t count = 0;
    for (const Batch& batch : batches) count += batch.count;
    if (engine_->is_short(count)) {
      engine_->run(vectors, scale, batches, threads_);
      return;
    }
    without_gil([&] { engine_->run(vectors, scale, batches, threads_); });
  }

  nb::dict describe() const { return buropt::describe(*engine_, n_samples()); }

  std::int64_t dim() const { return x_shape_.size(); }
  std::int64_t bytes() const { return dim() * size_of(dtype_); }
  DType dtype() const { return dtype_; }
  const Samples& samples() const { return samples_; }
  bool has_gradient() const { return has_gradient_; }
  std::int64_t n_samples() const { return samples_.n(); }

  /// The memory of a parameter vector: (dim,), or the shape of the start point.
  const std::byte* point(nb::handle x, Shape& shape, nb::object& holder, const char* name) const {
    const std::byte* data = read_array(x, dtype_, shape, holder, name);
    if (!(shape == x_shape_) && !(shape == Shape{dim()})) {
      raise(ErrorKind::value, "%s must have shape %s, got %s", name, Shape{dim()}.str().c_str(),
            shape.str().c_str());
    }
    return data;
  }

 private:
  /// Points every batch at the weights of its samples, copied together where they do not lie in
  /// order.
  void deal_weights(const std::byte* weights, std::vector<Batch>& batches,
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

  void pick_for_workers(nb::handle idx, nb::object& holder, std::vector<Batch>& batches) const {
    const auto [list, shape] = read_integers(idx, holder, "idx");
    if (shape.rank() != 2 || shape[0] != static_cast<std::int64_t>(batches.size()) ||
        shape[1] == 0) {
      raise(ErrorKind::value, "idx must have shape (n_workers, b) = (%zu, b), got %s",
            batches.size(), shape.str().c_str());
    }
    samples_.check_range(list, shape.size(), "idx");
    for (std::size_t i = 0; i < batches.size(); ++i) {
      batches[i].fixed = -1;
      batches[i].idx = list + static_cast<std::int64_t>(i) * shape[1];
      batches[i].count = shape[1];
    }
  }

  std::shared_ptr<Engine> engine_;
  std::vector<Batch> workers_;
  DType dtype_;
  Samples samples_;
  Shape x_shape_;
  int threads_;
  std::vector<Buffer> spare_;  ///< gradients for step
  /// Memory for the list of a call's outputs; of several at once, one has it.
  mutable std::vector<std::byte*> outputs_;
  bool has_value_ = false;
  bool has_gradient_ = false;
};

/// A call on fixed arrays: no conversion, no allocation, no check.
class BoundCall {
 public:
  BoundCall(nb::object evaluator, nb::object x, nb::object g, nb::object weights)
      : evaluator_(nb::cast<const Evaluator&>(evaluator)), kept_{evaluator, x, g, weights} {
    Shape shape;
    nb::object holder;
    x_ = evaluator_.point(x, shape, holder, "x");
    if (holder.is_valid()) {
      raise(
          ErrorKind::type,
          "bind needs x as a C-contiguous %s array, so that its later values are seen; convert it "
          "with np.ascontiguousarray(x, np.%s)",
          std::string(name_of(evaluator_.dtype())).c_str(),
          std::string(name_of(evaluator_.dtype())).c_str());
    }
    batch_.count = evaluator_.n_samples();
    batch_.fixed = kAllSamples;
    batch_.outputs = {value_, nullptr};
    if (evaluator_.has_gradient()) {
      batch_.outputs[kGradient] = write_array(g, evaluator_.dtype(), shape, "g");
      const std::array<Source, 1> read{{{"x", x_, evaluator_.bytes()}}};
      refuse_overlap("g", batch_.outputs[kGradient], evaluator_.bytes(), read);
      refuse_overlap("g", batch_.outputs[kGradient], evaluator_.bytes(),
                     evaluator_.samples().sources());
    }
    if (!weights.is_none()) {
      batch_.weights = evaluator_.samples().read_weights(weights, batch_, weight_holder_);
    }
    scale_ = scale_of(batch_);
  }
  BoundCall(const BoundCall&) = delete;
  BoundCall& operator=(const BoundCall&) = delete;

  double call() const {
    evaluator_.run(x_, scale_, std::span<const Batch>(&batch_, 1));
    return to_double(value_, evaluator_.dtype());
  }

  /// The same as a slot of the type: a call through the binding would take as long as a small
  /// program.
  static PyObject* call_slot(PyObject* self, PyObject* arguments, PyObject* named) {
    if (PyTuple_GET_SIZE(arguments) > 0 || (named != nullptr && PyDict_GET_SIZE(named) > 0)) {
      PyErr_SetString(PyExc_TypeError, "a bound call takes no arguments: it reads the array x");
      return nullptr;
    }
    if (!nb::inst_ready(self)) {
      PyErr_SetString(PyExc_TypeError, "buropt.BoundCall: __init__ was not called");
      return nullptr;
    }
    return without_exceptions(
        [&] { return PyFloat_FromDouble(nb::inst_ptr<BoundCall>(self)->call()); });
  }

 private:
  const Evaluator& evaluator_;
  std::array<nb::object, 4> kept_;
  nb::object weight_holder_;
  const std::byte* x_ = nullptr;
  Batch batch_;
  double scale_ = 1;
  alignas(8) std::byte value_[8] = {};
};

}  // namespace

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

  static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(BoundCall::call_slot)},
                                {0, nullptr}};
  nb::class_<BoundCall>(m, "BoundCall", nb::type_slots(slots), "A call on fixed arrays.")
      .def(nb::init<nb::object, nb::object, nb::object, nb::object>(), "evaluator"_a, "x"_a,
           "g"_a.none(), "weights"_a.none())
      .def(
          "__reduce__",
          [](const BoundCall&) -> nb::object {
            raise(ErrorKind::type,
                  "a bound call cannot be pickled or copied: it works on two arrays of this "
                  "process. Pickle the oracle, and call its bind(x, g) where the copy is used.");
          },
          nb::sig("def __reduce__(self) -> typing.NoReturn"));
}

}  // namespace buropt
