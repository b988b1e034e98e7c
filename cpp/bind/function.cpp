// _core.Program: a plain function of arrays.
#include "bind/function.h"

#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bind/gil.h"
#include "bind/topics.h"

namespace buropt {

using namespace nb::literals;

FunctionProgram::FunctionProgram(std::shared_ptr<Graph> graph) : dtype_(DType::float64) {
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
  batch_[0].outputs.resize(outputs.size());
  engine_ = std::make_shared<Engine>(graph, inputs, outputs, Data{});
}

void FunctionProgram::evaluate(PyObject* const* arrays, std::span<std::byte* const> outputs) const {
  Few<double> scalars(n_inputs());
  Few<const std::byte*> vectors(n_inputs());
  std::vector<nb::object> holders;
  for (std::size_t k = 0; k < n_inputs(); ++k) {
    vectors[k] = read(arrays[k], k, holders, &scalars[k]);
  }
  if (engine_->is_short(1)) {
    std::copy(outputs.begin(), outputs.end(), batch_[0].outputs.begin());
    engine_->run(vectors.span(), 1, batch_, 1);
    return;
  }
  std::array<Batch, 1> batch;
  batch[0].outputs.assign(outputs.begin(), outputs.end());
  without_gil([&] { engine_->run(vectors.span(), 1, batch, 1); });
}

const std::byte* FunctionProgram::read(nb::handle object, std::size_t k,
                                       std::vector<nb::object>& holders, double* scalar) const {
  if (in_shapes_[k].rank() == 0 && PyFloat_Check(object.ptr())) {
    const double value = PyFloat_AS_DOUBLE(object.ptr());
    dispatch(dtype_, [&](auto typed) {
      typed = static_cast<decltype(typed)>(value);
      std::memcpy(scalar, &typed, sizeof(typed));
    });
    return reinterpret_cast<const std::byte*>(scalar);
  }
  Shape shape;
  nb::object holder;
  const std::byte* data = read_array(object, dtype_, shape, holder, names_[k].c_str());
  check_shape(names_[k].c_str(), in_shapes_[k], shape);
  if (holder.is_valid()) holders.push_back(std::move(holder));
  return data;
}

namespace {

/// Inputs in the graph's order. The results are fresh arrays; scalars are Python floats.
nb::list call(const FunctionProgram& program, const nb::args& arrays) {
  if (arrays.size() != program.n_inputs()) {
    raise(ErrorKind::type, "buropt.Program takes %zu arrays, got %zu", program.n_inputs(),
          arrays.size());
  }
  const std::size_t n = program.n_outputs();
  Few<double> scalars(n);
  Few<std::byte*> outputs(n);
  nb::list results;
  for (std::size_t k = 0; k < n; ++k) {
    if (program.out_shape(k).rank() == 0) {
      outputs[k] = reinterpret_cast<std::byte*>(&scalars[k]);
      results.append(nb::none());
    } else {
      const nb::object array = empty_array(program.out_shape(k), program.dtype());
      outputs[k] = memory_of(as_array(array.ptr()));
      results.append(array);
    }
  }
  program.evaluate(PySequence_Fast_ITEMS(arrays.ptr()), outputs.span());
  for (std::size_t k = 0; k < n; ++k) {
    if (program.out_shape(k).rank() > 0) continue;
    results[k] = nb::float_(to_double(outputs[k], program.dtype()));
  }
  return results;
}

}  // namespace

void bind_function(nb::module_& m) {
  nb::class_<FunctionProgram>(m, "Program", "A plain function of arrays.")
      .def(nb::init<std::shared_ptr<Graph>>(), "graph"_a)
      .def("__call__", &call, "arrays"_a);
}

}  // namespace buropt
