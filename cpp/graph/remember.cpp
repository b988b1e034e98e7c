#include "graph/remember.h"

#include <unordered_map>

#include "math/head_lanes.h"

namespace buropt {
namespace {

/// Attention and the nodes that carry cotangents back through it.
struct Pair {
  NodeId value;
  Attributes attributes;  ///< those of the nodes that take their place
  NodeId memory = kNone;  ///< in the new graph
};

/// Attention nodes that have a cotangent, by number of both.
std::unordered_map<NodeId, std::shared_ptr<Pair>> find_pairs(const Graph& g) {
  const OpId attention = find_op("attention");
  const OpId vjp = find_op("attention_vjp");
  std::vector<std::shared_ptr<Pair>> values;
  const auto ids = [&](OpId op, auto&& f) {
    for (std::size_t i = 0; i < g.nodes.size(); ++i) {
      if (g.nodes[i].op == op) f(static_cast<NodeId>(i), g.nodes[i]);
    }
  };
  ids(attention, [&](NodeId id, const Node& node) {
    const Shape& shape = node.type.shape;
    const std::int64_t heads = node.attributes[0][0];
    const AttentionShape a{shape[0], heads, shape[1] / heads, node.attributes[1][0] != 0};
    if (!a.remembers()) return;
    Attributes attributes = node.attributes;
    attributes.lists[2] = {shape.begin(), shape.end()};
    values.push_back(std::make_shared<Pair>(Pair{id, std::move(attributes)}));
  });
  std::unordered_map<NodeId, std::shared_ptr<Pair>> pairs;
  ids(vjp, [&](NodeId id, const Node& node) {
    for (const auto& pair : values) {
      const Node& value = g.node(pair->value);
      if (value.inputs[0] != node.inputs[1] || !(value.attributes == node.attributes)) continue;
      if (value.type.batched != node.type.batched) continue;
      pairs[id] = pairs[pair->value] = pair;
    }
  });
  return pairs;
}

}  // namespace

std::shared_ptr<const Graph> with_memories(std::shared_ptr<const Graph> graph) {
  const Graph& g = *graph;
  const auto pairs = find_pairs(g);
  if (pairs.empty()) return graph;
  auto result = std::make_shared<Graph>(g);
  result->nodes.clear();
  std::vector<NodeId> renamed;
  const auto append = [&](Node node) {
    result->nodes.push_back(std::move(node));
    return static_cast<NodeId>(result->nodes.size() - 1);
  };
  for (std::size_t i = 0; i < g.nodes.size(); ++i) {
    Node node = g.nodes[i];
    for (NodeId& input : node.inputs) input = renamed[static_cast<std::size_t>(input)];
    const auto found = pairs.find(static_cast<NodeId>(i));
    if (found != pairs.end()) {
      Pair& pair = *found->second;
      NodeId& qkv = node.inputs.back();
      if (pair.memory == kNone) {
        static const OpId memory = find_op("attention_memory");
        const Type& type = result->node(qkv).type;
        pair.memory =
            append({memory, {qkv}, pair.attributes, op(memory).infer({&type, 1}, pair.attributes)});
      }
      qkv = pair.memory;
      node.attributes = pair.attributes;
      node.op = find_op(pair.value == static_cast<NodeId>(i) ? "attention_from_memory"
                                                             : "attention_vjp_from_memory");
    }
    renamed.push_back(append(std::move(node)));
  }
  for (Input& input : result->inputs) input.node = renamed[static_cast<std::size_t>(input.node)];
  for (NodeId& output : result->outputs) output = renamed[static_cast<std::size_t>(output)];
  return result;
}

}  // namespace buropt
