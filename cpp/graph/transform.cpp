#include "graph/transform.h"

#include "ops/axes.h"

#include <algorithm>

namespace buropt {

NodeId with_type(Builder& b, NodeId value, const Type& type) {
  if (!(b.type(value).shape == type.shape)) {
    value = b.emit("broadcast_to", {value}, Attributes({type.shape.begin(), type.shape.end()}));
  }
  return type.batched ? b.emit("to_batched", {value}) : value;
}

std::vector<bool> descendants(const Builder& b, std::span<const NodeId> nodes) {
  std::vector<bool> result(static_cast<std::size_t>(b.size()), false);
  for (const NodeId node : nodes) result[static_cast<std::size_t>(node)] = true;
  for (NodeId id = 0; id < b.size(); ++id) {
    for (const NodeId input : b.at(id).inputs) {
      if (result[static_cast<std::size_t>(input)]) result[static_cast<std::size_t>(id)] = true;
    }
  }
  return result;
}

std::vector<NodeId> expand_fused(Builder& b, std::span<const NodeId> outputs,
                                 std::span<const NodeId> wrt) {
  const auto index = [](NodeId node) { return static_cast<std::size_t>(node); };
  const auto is_fused = [&](NodeId id) {
    if (b.at(id).op == kNoOp) return false;
    const Op& record = op(b.at(id).op);
    return record.expand != nullptr && record.reverse == nullptr;
  };
  std::vector<NodeId> result(outputs.begin(), outputs.end());
  const std::vector<bool> needed = b.ancestors(outputs);
  std::vector<bool> is_wrt(index(b.size()), false);
  for (const NodeId node : wrt) is_wrt[index(node)] = true;
  const NodeId end = b.size();
  bool changed = false;
  for (NodeId id = 0; id < end && !changed; ++id) {
    changed = needed[index(id)] && !is_wrt[index(id)] && is_fused(id);
  }
  if (!changed) return result;

  std::vector<NodeId> renamed(index(end));
  for (NodeId id = 0; id < end; ++id) {
    renamed[index(id)] = id;
    // A wrt stands for itself: how it was computed plays no part, so it keeps its number.
    if (!needed[index(id)] || is_wrt[index(id)] || b.at(id).op == kNoOp) continue;
    std::vector<NodeId> inputs = b.at(id).inputs;
    bool moved = false;
    for (NodeId& input : inputs) {
      moved = moved || renamed[index(input)] != input;
      input = renamed[index(input)];
    }
    const OpId op_id = b.at(id).op;
    if (is_fused(id)) {
      const Type type = b.type(id);
      const Attributes attributes = b.at(id).attributes;  // emitting moves the nodes
      renamed[index(id)] = with_type(b, op(op_id).expand(b, inputs, attributes), type);
    } else if (moved) {
      const Attributes attributes = b.at(id).attributes;
      renamed[index(id)] = b.emit(op_id, inputs, attributes);
    }
  }
  for (NodeId& output : result) output = renamed[index(output)];
  return result;
}

Selections::Selections(const Builder& builder, std::span<const NodeId> outputs) {
  static const OpId where = find_op("where");
  std::vector<NodeId> found, branches;
  const std::vector<bool> needed = builder.ancestors(outputs);
  for (NodeId id = 0; id < builder.size(); ++id) {
    const Node& node = builder.at(id);
    if (!needed[static_cast<std::size_t>(id)] || node.op != where) continue;
    found.push_back(id);
    branches.insert(branches.end(), node.inputs.begin() + 1, node.inputs.end());
  }
  const std::vector<bool> none(static_cast<std::size_t>(builder.size()), false);
  guarded = found.empty() ? none : builder.ancestors(branches);
  selected = found.empty() ? none : descendants(builder, found);
}

NodeId Selections::times_zero(Builder& builder, NodeId product, std::size_t operand,
                              NodeId term) const {
  static const OpId multiply = find_op("multiply");
  const Node& node = builder.at(product);
  if (node.op != multiply || !guarded[static_cast<std::size_t>(product)]) return term;
  const NodeId factor = node.inputs[1 - operand];
  if (!selected[static_cast<std::size_t>(factor)]) return term;
  const NodeId zero = builder.constant(0.0, builder.dtype());
  return without_nan(builder, builder.emit("equal", {factor, zero}), term);
}

}  // namespace buropt
