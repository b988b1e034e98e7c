// _core.Graph.
#include "graph/graph.h"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bind/arrays.h"
#include "bind/gil.h"
#include "bind/topics.h"
#include "graph/serialize.h"

namespace buropt {
namespace {

using namespace nb::literals;

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
}

}  // namespace buropt
