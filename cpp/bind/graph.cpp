// Graph building: _core.Builder, _core.Graph, the list of primitives.
#include "graph/graph.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/arrays.h"
#include "bind/gil.h"
#include "bind/topics.h"
#include "graph/serialize.h"
#include "graph/transform.h"

namespace buropt {
namespace {

using namespace nb::literals;

DType dtype_from(const std::string& name) {
  if (name == "float32") return DType::float32;
  if (name == "float64") return DType::float64;
  raise(ErrorKind::type, "buropt computes in float32 or float64, got dtype '%s'", name.c_str());
}

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

nb::bytes graph_bytes(const Graph& graph) {
  std::string text;
  without_gil([&] { text = to_bytes(graph); });
  return nb::bytes(text.data(), text.size());
}

std::shared_ptr<Graph> read_graph(const nb::bytes& bytes, const std::string& name) {
  const auto* data = static_cast<const std::byte*>(bytes.data());
  std::shared_ptr<const Graph> graph;
  without_gil([&] { graph = graph_from_bytes(std::span(data, bytes.size()), name); });
  return std::const_pointer_cast<Graph>(graph);
}

/// What tools ask of a node.
nb::dict describe_node(const Graph& graph, const Node& node) {
  nb::dict row;
  row["op"] = std::string(node.is_input()    ? "input"
                          : node.is_constant ? "constant"
                                             : op(node.op).name);
  const auto slot = static_cast<std::size_t>(node.slot);
  row["name"] = node.is_input() ? nb::object(nb::cast(graph.inputs[slot].name)) : nb::none();
  const bool is_number = node.is_constant && node.type.shape.rank() == 0;
  row["value"] =
      is_number ? nb::object(nb::float_(to_double(graph.constants[slot]->data(), node.type.dtype)))
                : nb::none();
  row["inputs"] = node.inputs;
  nb::dict attributes;
  for (std::size_t k = 0; node.op != kNoOp && k < Attributes::kLists; ++k) {
    const std::string name(op(node.op).attributes[k]);
    if (!name.empty()) attributes[name.c_str()] = node.attributes.lists[k];
  }
  row["attributes"] = attributes;
  row["shape"] = to_tuple(node.type.shape);
  row["batched"] = node.type.batched;
  row["sparse"] = node.type.csr;
  return row;
}

std::vector<NodeId> add_graph(Builder& b, const Graph& graph, const std::vector<NodeId>& inputs) {
  for (const NodeId input : inputs) checked(b, input);
  return b.add_graph(graph, inputs);
}

nb::list list_ops() {
  nb::list result;
  for (const Op& record : all_ops()) {
    nb::dict row;
    row["name"] = std::string(record.name);
    row["doc"] = std::string(record.doc);
    row["arity"] = record.arity;
    row["elementwise"] = record.elementwise;
    row["derived"] = record.derived;
    nb::list domain;
    for (int k = 0; k < std::max(record.arity, 1); ++k) {
      const auto [low, high] = record.domain[std::min<std::size_t>(static_cast<std::size_t>(k), 2)];
      domain.append(nb::make_tuple(low, high));
    }
    row["domain"] = domain;
    nb::list attributes;
    for (const std::string_view name : record.attributes) {
      if (!name.empty()) attributes.append(std::string(name));
    }
    row["attributes"] = attributes;
    result.append(row);
  }
  return result;
}

/// One elementwise primitive by its tile kernel, on contiguous arrays of one shape.
nb::object elementwise(const std::string& name, const nb::args& arrays) {
  const Op& record = op(find_op(name));
  const bool has_attributes = !record.attributes[0].empty();
  if (!record.elementwise || has_attributes || static_cast<int>(arrays.size()) != record.arity) {
    raise(ErrorKind::type,
          "buropt.elementwise: '%s' is not an elementwise primitive of %zu operands", name.c_str(),
          arrays.size());
  }
  Type type;
  const nb::object dtype = arrays[0].attr("dtype");
  type.dtype = dtype_from(nb::str(dtype).c_str());
  Instruction instruction;
  std::vector<nb::object> holders(arrays.size());
  std::vector<std::byte*> buffers;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    Shape shape;
    buffers.push_back(
        const_cast<std::byte*>(read_array(arrays[k], type.dtype, shape, holders[k], "array")));
    if (k > 0 && !(shape == type.shape)) {
      raise(ErrorKind::value, "buropt.elementwise: shapes %s and %s differ",
            type.shape.str().c_str(), shape.str().c_str());
    }
    type.shape = shape;
    instruction.in.push_back(static_cast<std::int32_t>(k));
  }
  const std::vector<Type> types(arrays.size(), type);
  record.lower({types, type, {}, 1}, instruction);
  nb::object result = empty_array(type.shape, type.dtype);
  instruction.out = static_cast<std::int32_t>(buffers.size());
  buffers.push_back(write_array(result, type.dtype, type.shape, "result"));
  without_gil([&] { instruction.run(instruction, {buffers.data(), 1, nullptr}); });
  return result;
}

}  // namespace

void bind_graph(nb::module_& m) {
  nb::class_<Graph>(m, "Graph", "An immutable list of nodes in SSA form.")
      .def("__str__", &Graph::str)
      .def_prop_ro("n_nodes", [](const Graph& g) { return g.nodes.size(); })
      .def_prop_ro("dtype",
                   [](const Graph& g) { return std::string(name_of(g.nodes.at(0).type.dtype)); })
      .def_prop_ro("input_names",
                   [](const Graph& g) {
                     std::vector<std::string> names;
                     for (const Input& input : g.inputs) names.push_back(input.name);
                     return names;
                   })
      .def_prop_ro("output_names", [](const Graph& g) { return g.output_names; })
      .def_prop_ro(
          "nodes",
          [](const Graph& g) {
            nb::list rows;
            for (const Node& node : g.nodes) rows.append(describe_node(g, node));
            return rows;
          },
          nb::sig("def nodes(self) -> list[dict[str, typing.Any]]"),
          "The nodes in order, operands by their numbers: one dict each.")
      .def_prop_ro(
          "outputs",
          [](const Graph& g) {
            std::vector<std::pair<std::string, NodeId>> rows;
            for (std::size_t k = 0; k < g.outputs.size(); ++k) {
              rows.emplace_back(g.output_names[k], g.outputs[k]);
            }
            return rows;
          },
          "Names of the outputs, and the numbers of their nodes.")
      .def(
          "to_dot",
          [](nb::handle graph) {
            return nb::module_::import_("buropt.drawing").attr("to_dot")(graph);
          },
          nb::sig("def to_dot(self) -> str"), "The graph in Graphviz's DOT language.")
      .def(
          "draw",
          [](nb::handle graph, nb::handle path) {
            nb::module_::import_("buropt.drawing").attr("draw")(graph, path);
          },
          "path"_a, nb::sig("def draw(self, path: str | os.PathLike[str]) -> None"),
          "Draw the graph into a .png, .svg or .pdf file; of at most 2000 nodes (ValueError).")
      .def("to_bytes", graph_bytes, "The graph as bytes that `from_bytes` reads.")
      .def_static("from_bytes", read_graph, "data"_a, "name"_a = "the data",
                  "Read what `to_bytes` gave. `name` stands for it in error messages (ValueError).")
      .def("__getstate__", graph_bytes)
      .def("__setstate__",
           [](Graph& g, const nb::bytes& bytes) {
             new (&g) Graph(*read_graph(bytes, "the pickled graph"));
           })
      .def("__copy__", [](std::shared_ptr<Graph> g) { return g; })
      .def("__deepcopy__", [](std::shared_ptr<Graph> g, nb::handle) { return g; }, "memo"_a);

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

  m.def("ops", list_ops, "The primitives: one dict each.");
  m.def("elementwise", elementwise, "name"_a, "arrays"_a,
        "One elementwise primitive on contiguous arrays of one shape and dtype.");
}

}  // namespace buropt
