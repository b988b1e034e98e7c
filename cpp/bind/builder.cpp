// _core.Builder.
#include "graph/builder.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstring>

#include "bind/arrays.h"
#include "bind/topics.h"
#include "graph/transform.h"

namespace buropt {
namespace {

using namespace nb::literals;

Attributes attributes_from(const Op& record, const nb::dict& dict) {
  Attributes attributes;
  std::size_t known = 0;
  for (std::size_t i = 0; i < record.attributes.size(); ++i) {
    const std::string name(record.attributes[i]);
    if (name.empty() || !dict.contains(name.c_str())) continue;
    ++known;
    nb::object value = dict[name.c_str()];
    if (nb::isinstance<nb::int_>(value))
      attributes.lists[i] = {nb::cast<std::int64_t>(value)};
    else
      attributes.lists[i] = nb::cast<std::vector<std::int64_t>>(value);
  }
  if (known != dict.size()) {
    raise(ErrorKind::type, "buropt.%s: unknown attribute", std::string(record.name).c_str());
  }
  return attributes;
}

NodeId checked(const Builder& b, NodeId node) {
  if (node < 0 || node >= b.size()) {
    raise(ErrorKind::index, "buropt: there is no node %d in this graph of %d nodes", node,
          b.size());
  }
  return node;
}

NodeId emit(Builder& b, const std::string& name, const std::vector<NodeId>& inputs,
            const nb::dict& attributes) {
  const OpId id = find_op(name);
  for (const NodeId input : inputs) checked(b, input);
  return b.emit(id, inputs, attributes_from(op(id), attributes));
}

std::span<const NodeId> checked(const Builder& b, const std::vector<NodeId>& nodes) {
  for (const NodeId node : nodes) checked(b, node);
  return nodes;
}

NodeId constant(Builder& b, nb::handle value) {
  Shape shape;
  nb::object holder;
  const std::byte* data = read_array(value, b.dtype(), shape, holder, "constant");
  return b.constant(data, shape);
}

nb::object constant_value(const Builder& b, NodeId node) {
  const Buffer* values = b.constant_values(checked(b, node));
  if (values == nullptr) return nb::none();
  const Type type = b.type(node);
  nb::object array = empty_array(type.shape, b.dtype());
  std::byte* to = write_array(array, b.dtype(), type.shape, "constant");
  std::memcpy(to, values->data(), static_cast<std::size_t>(type.size() * size_of(b.dtype())));
  return array;
}

std::vector<bool> depends_on(const Builder& b, NodeId output, const std::vector<NodeId>& inputs) {
  const std::vector<bool> needed = b.ancestors(std::array{checked(b, output)});
  std::vector<bool> result;
  for (const NodeId input : inputs) {
    result.push_back(needed[static_cast<std::size_t>(checked(b, input))]);
  }
  return result;
}

std::vector<NodeId> add_graph(Builder& b, const Graph& graph, const std::vector<NodeId>& inputs) {
  for (const NodeId input : inputs) checked(b, input);
  return b.add_graph(graph, inputs);
}

}  // namespace

void bind_builder(nb::module_& m) {
  nb::class_<Builder>(m, "Builder", "Appends nodes to a graph of one float dtype.")
      .def(
          "__init__",
          [](Builder* self, const std::string& dtype) { new (self) Builder(dtype_from(dtype)); },
          "dtype"_a)
      .def_prop_ro("dtype", [](const Builder& b) { return std::string(name_of(b.dtype())); })
      .def(
          "input",
          [](Builder& b, std::string name, const std::vector<std::int64_t>& shape, bool batched) {
            return b.input(std::move(name), Shape(shape), batched);
          },
          "name"_a, "shape"_a, "batched"_a = false)
      .def("csr_input", &Builder::csr_input, "name"_a, "n_features"_a)
      .def("constant", constant, "value"_a)
      .def("emit", emit, "op"_a, "inputs"_a, "attributes"_a = nb::dict())
      .def("add_graph", add_graph, "graph"_a, "inputs"_a)
      .def("shape",
           [](const Builder& b, NodeId n) { return to_tuple(b.type(checked(b, n)).shape); })
      .def("batched", [](const Builder& b, NodeId n) { return b.type(checked(b, n)).batched; })
      .def("is_csr", [](const Builder& b, NodeId n) { return b.type(checked(b, n)).csr; })
      .def("constant_value", constant_value, "node"_a)
      .def(
          "definition",
          [](const Builder& b, NodeId n) {
            const Node& node = b.at(checked(b, n));
            const std::string name(node.op == kNoOp ? std::string_view() : op(node.op).name);
            return std::pair(name, node.inputs);
          },
          "node"_a, "Name of the primitive, empty for an input or constant; the operands.")
      .def("depends_on", depends_on, "output"_a, "inputs"_a)
      .def(
          "grad",
          [](Builder& b, NodeId output, const std::vector<NodeId>& wrt) {
            return grad(b, checked(b, output), checked(b, wrt));
          },
          "output"_a, "wrt"_a)
      .def(
          "vjp",
          [](Builder& b, const std::vector<NodeId>& outputs, const std::vector<NodeId>& cotangents,
             const std::vector<NodeId>& wrt, bool per_sample) {
            if (outputs.size() != cotangents.size()) {
              raise(ErrorKind::value, "buropt.vjp: %zu outputs but %zu cotangents", outputs.size(),
                    cotangents.size());
            }
            return vjp(b, checked(b, outputs), checked(b, cotangents), checked(b, wrt),
                       per_sample ? BatchCotangents::per_sample : BatchCotangents::summed);
          },
          "outputs"_a, "cotangents"_a, "wrt"_a, "per_sample"_a = false)
      .def(
          "jvp",
          [](Builder& b, const std::vector<NodeId>& outputs, const std::vector<NodeId>& wrt,
             const std::vector<NodeId>& tangents) {
            if (wrt.size() != tangents.size()) {
              raise(ErrorKind::value, "buropt.jvp: %zu inputs but %zu tangents", wrt.size(),
                    tangents.size());
            }
            return jvp(b, checked(b, outputs), checked(b, wrt), checked(b, tangents));
          },
          "outputs"_a, "wrt"_a, "tangents"_a)
      .def(
          "restrict",
          [](Builder& b, const std::vector<NodeId>& nodes, const std::vector<NodeId>& places) {
            if (nodes.size() != places.size()) {
              raise(ErrorKind::value, "buropt.restrict: %zu nodes but %zu places", nodes.size(),
                    places.size());
            }
            return restrict_to(b, checked(b, nodes), checked(b, places));
          },
          "nodes"_a, "places"_a)
      .def(
          "build",
          [](const Builder& b, const std::vector<NodeId>& outputs, std::vector<std::string> names) {
            checked(b, outputs);
            if (names.size() != outputs.size()) {
              raise(ErrorKind::value, "buropt: %zu outputs but %zu names", outputs.size(),
                    names.size());
            }
            return std::const_pointer_cast<Graph>(b.build(outputs, std::move(names)));
          },
          "outputs"_a, "names"_a);
}

}  // namespace buropt
