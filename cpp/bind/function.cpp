// _core.Program: a plain function of arrays.
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bind/arrays.h"
#include "bind/gil.h"
#include "bind/topics.h"
#include "exec/engine.h"

namespace buropt {
namespace {

using namespace nb::literals;

/// A plain function of arrays: every input a vector of its own, every output a fresh array.
class FunctionProgram {
 public:
  explicit FunctionProgram(std::shared_ptr<Graph> graph) : dtype_(DType::float64) {
    if (!graph->nodes.empty()) dtype_ = graph->nodes[0].type.dtype;
    std::vector<InputRole> inputs;
    for (const Input& input : graph->inputs) {
      const Type& type = graph->node(input.node).type;
      if (type.batched) {
        raise(ErrorKind::value, "buropt.Program: input %s is batched; a batch needs an oracle",
              input.name.c_str());
      }
      inputs.push_back({InputRole::vector, static_cast<std::int32_t>(inputs.size()), 0});
      in_shapes_.push_back(type.shape);
      names_.push_back(input.name);
    }
    std::vector<OutputRole> outputs;
    for (const NodeId output : graph->outputs) {
      outputs.push_back({static_cast<std::int32_t>(outputs.size()), 0});
      out_shapes_.push_back(graph->node(output).type.shape);
    }
    engine_ = std::make_shared<Engine>(graph, inputs, outputs, Data{});
  }

  /// Inputs in the graph's order. Outputs are written where `out` has an array and are fresh arrays
  /// where it has None; scalars are Python floats.
  nb::list call(const nb::args& arrays) const { return run(arrays, nb::none()); }

  nb::list run(const nb::tuple& arrays, nb::handle out) const {
    if (arrays.size() != in_shapes_.size()) {
      raise(ErrorKind::type, "buropt.Program takes %zu arrays, got %zu", in_shapes_.size(),
            arrays.size());
    }
    constexpr std::size_t kFew = 8;
    std::array<double, kFew> few_scalars;
    std::vector<double> many_scalars(
        arrays.size() + out_shapes_.size() > kFew ? arrays.size() + out_shapes_.size() : 0);
    double* scalars = many_scalars.empty() ? few_scalars.data() : many_scalars.data();
    std::vector<nb::object> holders(arrays.size());
    std::vector<const std::byte*> vectors(arrays.size());
    for (std::size_t k = 0; k < arrays.size(); ++k) {
      vectors[k] = read(arrays[k], k, holders[k], scalars + k);
    }
    Batch batch;
    nb::list results;
    for (std::size_t k = 0; k < out_shapes_.size(); ++k) {
      if (out_shapes_[k].rank() == 0) {
        batch.outputs.push_back(reinterpret_cast<std::byte*>(scalars + arrays.size() + k));
        results.append(nb::none());
        continue;
      }
      const bool given = !out.is_none() && !nb::object(out[k]).is_none();
      nb::object array = given ? nb::object(out[k]) : empty_array(out_shapes_[k], dtype_);
      batch.outputs.push_back(write_array(array, dtype_, out_shapes_[k], "out"));
      results.append(array);
    }
    if (engine_->is_short()) {
      engine_->run(vectors, 1, std::span<const Batch>(&batch, 1), 1);
    } else {
      without_gil([&] { engine_->run(vectors, 1, std::span<const Batch>(&batch, 1), 1); });
    }
    for (std::size_t k = 0; k < out_shapes_.size(); ++k) {
      if (out_shapes_[k].rank() == 0) {
        results[k] = nb::float_(to_double(batch.outputs[k], dtype_));
      }
    }
    return results;
  }

 private:
  const std::byte* read(nb::handle object, std::size_t k, nb::object& holder,
                        double* scalar) const {
    if (in_shapes_[k].rank() == 0 && PyFloat_Check(object.ptr())) {
      const double value = PyFloat_AS_DOUBLE(object.ptr());
      dispatch(dtype_, [&](auto typed) {
        typed = static_cast<decltype(typed)>(value);
        std::memcpy(scalar, &typed, sizeof(typed));
      });
      return reinterpret_cast<const std::byte*>(scalar);
    }
    Shape shape;
    const std::byte* data = read_array(object, dtype_, shape, holder, names_[k].c_str());
    if (!(shape == in_shapes_[k])) {
      raise(ErrorKind::value, "%s must have shape %s, got %s", names_[k].c_str(),
            in_shapes_[k].str().c_str(), shape.str().c_str());
    }
    return data;
  }

  std::shared_ptr<Engine> engine_;
  DType dtype_;
  std::vector<Shape> in_shapes_;
  std::vector<Shape> out_shapes_;
  std::vector<std::string> names_;
};

}  // namespace

void bind_function(nb::module_& m) {
  nb::class_<FunctionProgram>(m, "Program", "A plain function of arrays.")
      .def(nb::init<std::shared_ptr<Graph>>(), "graph"_a)
      .def("__call__", &FunctionProgram::call, "arrays"_a)
      .def("run", &FunctionProgram::run, "arrays"_a, "out"_a.none());
}

}  // namespace buropt
