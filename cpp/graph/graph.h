// Graph: an immutable list of nodes in SSA form. A node is a primitive, its operands' numbers,
// static attributes and a type; operands always come before their users, so every sweep is a loop.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "ops/op.h"

namespace buropt {

struct Node {
  OpId op = kNoOp;
  std::vector<NodeId> inputs;
  Attributes attributes;
  Type type;
  /// For op == kNoOp: number of the input, or of the constant.
  std::int32_t slot = -1;
  bool is_constant = false;

  bool is_input() const { return op == kNoOp && !is_constant; }
};

struct Input {
  std::string name;
  NodeId node;
};

struct Graph {
  std::vector<Node> nodes;
  std::vector<Input> inputs;
  std::vector<std::shared_ptr<const Buffer>> constants;
  std::vector<NodeId> outputs;
  std::vector<std::string> output_names;

  const Node& node(NodeId id) const { return nodes[static_cast<std::size_t>(id)]; }

  /// One line a node, e.g. "%3 = multiply(%1, %2)  float64 batched (4,)".
  std::string str() const;
};

}  // namespace buropt
