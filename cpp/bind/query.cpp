// _core.Query: a graph over data with any vectors in and any arrays out, one value for the batch or
// one for each sample: Hessian products, gradients sample by sample, several directions at once.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "bind/describe.h"
#include "bind/gil.h"
#include "bind/samples.h"
#include "bind/topics.h"

namespace buropt {
namespace {

using namespace nb::literals;

/// An array that a call takes or gives: its name and shape; with `rows`, that of one sample, and
/// the array has the samples along its first axis.
struct ArrayPlan {
  std::string name;
  Shape shape;
  bool rows;

  Shape full(std::int64_t count) const {
    if (!rows) return shape;
    Shape result{count};
    for (const std::int64_t extent : shape) result.push_back(extent);
    return result;
  }
};

using ArrayTuple = std::tuple<std::string, std::vector<std::int64_t>, bool>;

std::vector<ArrayPlan> plans_from(const std::vector<ArrayTuple>& tuples) {
  std::vector<ArrayPlan> plans;
  for (const auto& [name, shape, rows] : tuples) plans.push_back({name, Shape(shape), rows});
  return plans;
}

class Query {
 public:
  Query(std::shared_ptr<Graph> graph, const std::vector<ArrayTuple>& arguments,
        const std::vector<ArrayTuple>& results,
        const std::vector<std::tuple<std::string, std::int32_t, std::int64_t>>& inputs,
        const std::vector<std::pair<std::int32_t, std::int64_t>>& outputs, const nb::list& dense,
        const nb::list& csr, std::int64_t n_samples, int threads)
      : dtype_(graph->nodes.at(0).type.dtype),
        samples_(dtype_, n_samples, dense, csr),
        arguments_(plans_from(arguments)),
        results_(plans_from(results)),
        threads_(threads) {
    std::vector<InputRole> roles;
    for (const auto& [kind, number, offset] : inputs) {
      roles.push_back(role_from(kind, number, offset));
    }
    std::vector<OutputRole> places;
    for (const auto& [number, offset] : outputs) {
      const ArrayPlan& result = results_.at(static_cast<std::size_t>(number));
      places.push_back({number, offset, result.rows ? result.shape.size() : 0});
    }
    engine_ = std::make_shared<Engine>(graph, roles, places, samples_.data());
  }

  /// Fresh arrays, or those of `out` where it is not None; numbers are Python floats. scale: of the
  /// input of that role.
  nb::object call(const nb::list& arrays, nb::handle idx, nb::handle weights, double scale,
                  const nb::list& out) const {
    if (arrays.size() != arguments_.size() || out.size() != results_.size()) {
      raise(ErrorKind::type, "buropt.Query takes %zu arrays and gives %zu", arguments_.size(),
            results_.size());
    }
    nb::object idx_holder, weight_holder;
    Batch batch = samples_.pick(idx, idx_holder);
    std::vector<nb::object> holders(arrays.size());
    std::vector<const std::byte*> vectors;
    std::vector<Source> read(samples_.sources().begin(), samples_.sources().end());
    bool counted = samples_.n() > 0;
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      const ArrayPlan& plan = arguments_[k];
      Shape shape;
      vectors.push_back(read_array(arrays[k], dtype_, shape, holders[k], plan.name.c_str()));
      read.push_back({plan.name.c_str(), vectors.back(), shape.size() * size_of(dtype_)});
      if (plan.rows && !counted && shape.rank() > 0) {
        batch.count = shape[0];
        batch.fixed = -1;
        counted = true;
      }
      check_shape(plan.name.c_str(), plan.full(batch.count), shape);
    }
    if (!weights.is_none()) batch.weights = samples_.read_weights(weights, batch, weight_holder);
    nb::list results;
    std::vector<double> scalars(results_.size());
    for (std::size_t k = 0; k < results_.size(); ++k) {
      const Shape shape = results_[k].full(batch.count);
      if (shape.rank() == 0) {
        batch.outputs.push_back(reinterpret_cast<std::byte*>(&scalars[k]));
        results.append(nb::none());
        continue;
      }
      const nb::object given = out[k];
      const nb::object array = given.is_none() ? empty_array(shape, dtype_) : given;
      batch.outputs.push_back(write_array(array, dtype_, shape, "out"));
      if (!given.is_none()) {
        refuse_overlap("out", batch.outputs.back(), shape.size() * size_of(dtype_), read);
      }
      results.append(array);
    }
    const auto run = [&] {
      engine_->run(vectors, scale, std::span<const Batch>(&batch, 1), threads_);
    };
    if (engine_->is_short(batch.count))
      run();
    else
      without_gil(run);
    for (std::size_t k = 0; k < results_.size(); ++k) {
      if (results_[k].full(batch.count).rank() != 0) continue;
      results[k] = nb::float_(to_double(batch.outputs[k], dtype_));
    }
    return results;
  }

  nb::dict describe() const { return buropt::describe(*engine_); }
  std::int64_t work_per_sample() const { return engine_->program().work_per_sample; }

 private:
  DType dtype_;
  Samples samples_;
  std::vector<ArrayPlan> arguments_;
  std::vector<ArrayPlan> results_;
  int threads_;
  std::shared_ptr<Engine> engine_;
};

}  // namespace

void bind_query(nb::module_& m) {
  nb::class_<Query>(m, "Query",
                    "A graph over data: arrays in, arrays out, for the batch or sample by sample.")
      .def(nb::init<std::shared_ptr<Graph>, const std::vector<ArrayTuple>&,
                    const std::vector<ArrayTuple>&,
                    const std::vector<std::tuple<std::string, std::int32_t, std::int64_t>>&,
                    const std::vector<std::pair<std::int32_t, std::int64_t>>&, const nb::list&,
                    const nb::list&, std::int64_t, int>(),
           "graph"_a, "arguments"_a, "results"_a, "inputs"_a, "outputs"_a, "dense"_a, "csr"_a,
           "n_samples"_a, "threads"_a)
      .def("__call__", &Query::call, "arrays"_a, "idx"_a.none(), "weights"_a.none(), "scale"_a,
           "out"_a)
      .def("describe", &Query::describe)
      .def_prop_ro("work_per_sample", &Query::work_per_sample);
}

}  // namespace buropt
