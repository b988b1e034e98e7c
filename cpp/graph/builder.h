// Builder: appends nodes, applying each primitive's shape rule and simplifications, folding
// constants and finding equal nodes (CSE). build() cuts out what the outputs need.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>

#include "graph/graph.h"

namespace buropt {

class Builder final : public Emitter {
 public:
  explicit Builder(DType dtype) : dtype_(dtype) {}

  DType dtype() const { return dtype_; }

  /// A value given at run time; batched: one per sample.
  NodeId input(std::string name, const Shape& shape, bool batched);
  /// A sparse row of data per sample.
  NodeId csr_input(std::string name, std::int64_t n_features);
  /// Row-major values, already in the builder's dtype; copied.
  NodeId constant(const std::byte* values, const Shape& shape);

  /// Emits the nodes of a graph on the given inputs, one for each of its own: its outputs here. On
  /// other batched inputs than the graph's the result is batched accordingly.
  std::vector<NodeId> add_graph(const Graph& graph, std::span<const NodeId> inputs);

  NodeId emit(OpId op, std::span<const NodeId> inputs, const Attributes& attributes) override;
  using Emitter::emit;
  NodeId constant(double value, DType dtype) override;
  NodeId constant(std::span<const double> values, const Shape& shape, DType dtype) override;
  Type type(NodeId node) const override { return at(node).type; }
  Definition definition(NodeId node) const override {
    return {at(node).op, at(node).inputs, at(node).attributes};
  }
  std::optional<double> uniform_value(NodeId node) const override;

  /// The values of a constant node, or nullptr.
  const Buffer* constant_values(NodeId node) const;

  const Node& at(NodeId node) const { return graph_.node(node); }
  std::int32_t size() const { return static_cast<std::int32_t>(graph_.nodes.size()); }

  /// Nodes that influence the given ones, as flags over all nodes.
  std::vector<bool> ancestors(std::span<const NodeId> nodes) const;

  /// The graph of these outputs: only what they need, inputs kept in order even when unused.
  std::shared_ptr<const Graph> build(std::span<const NodeId> outputs,
                                     std::vector<std::string> names) const;

 private:
  std::shared_ptr<const Graph> build_resolved(std::span<const NodeId> outputs,
                                              const std::vector<bool>& needed,
                                              std::vector<std::string> names) const;
  NodeId append(Node node);
  /// A constant with these values that is there already, or kNone.
  NodeId find_constant(std::size_t hash, const std::byte* values, const Shape& shape) const;
  NodeId append_constant(std::size_t hash, std::shared_ptr<const Buffer> values,
                         const Shape& shape);
  NodeId fold(OpId op, std::span<const NodeId> inputs, const Attributes& attributes,
              const Type& type);

  DType dtype_;
  Graph graph_;
  /// Numbers of the nodes with the same hash.
  std::unordered_multimap<std::size_t, NodeId> seen_;
};

}  // namespace buropt
