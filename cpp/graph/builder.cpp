#include "graph/builder.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace buropt {
namespace {

/// Results of constant folding above this many elements are computed at run time instead.
constexpr std::int64_t kMaxFolded = 1 << 16;

std::size_t mix(std::size_t hash, std::int64_t value) {
  const auto v = static_cast<std::size_t>(value);
  return hash ^ (v + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2));
}

std::size_t hash_of(OpId op, std::span<const NodeId> inputs, const Attributes& attributes) {
  std::size_t hash = mix(0, op);
  for (const NodeId input : inputs) hash = mix(hash, input);
  for (const auto& list : attributes.lists) {
    hash = mix(hash, -1);
    for (const std::int64_t value : list) hash = mix(hash, value);
  }
  return hash;
}

std::size_t hash_of(const std::byte* data, std::size_t bytes) {
  std::size_t hash = mix(1, static_cast<std::int64_t>(bytes));
  for (std::size_t i = 0; i + 4 <= bytes; i += 4) {
    std::int32_t word;
    std::memcpy(&word, data + i, sizeof(word));
    hash = mix(hash, word);
  }
  return hash;
}

void check_size(std::string_view name, const Shape& shape) {
  if (shape.is_sane()) return;
  raise(ErrorKind::value, "buropt.%s: an array of shape %s has too many elements",
        std::string(name).c_str(), shape.str().c_str());
}

}  // namespace

NodeId Builder::append(Node node) {
  if (graph_.nodes.size() >= static_cast<std::size_t>(std::numeric_limits<NodeId>::max())) {
    raise(ErrorKind::value, "buropt: the graph has more than 2^31 nodes");
  }
  graph_.nodes.push_back(std::move(node));
  return size() - 1;
}

NodeId Builder::input(std::string name, const Shape& shape, bool batched) {
  check_size(name, shape);
  Node node;
  node.type = {dtype_, shape, batched, false};
  node.slot = static_cast<std::int32_t>(graph_.inputs.size());
  const NodeId id = append(std::move(node));
  graph_.inputs.push_back({std::move(name), id});
  return id;
}

NodeId Builder::csr_input(std::string name, std::int64_t n_features) {
  const NodeId id = input(std::move(name), Shape{n_features}, true);
  graph_.nodes[static_cast<std::size_t>(id)].type.csr = true;
  return id;
}

NodeId Builder::constant(const std::byte* values, const Shape& shape) {
  const auto bytes = static_cast<std::size_t>(shape.size() * size_of(dtype_));
  const std::size_t hash = hash_of(values, bytes);
  const NodeId known = find_constant(hash, values, shape);
  if (known != kNone) return known;
  auto buffer = std::make_shared<Buffer>(std::max<std::size_t>(bytes, 1));
  if (bytes > 0) std::memcpy(buffer->data(), values, bytes);
  return append_constant(hash, std::move(buffer), shape);
}

NodeId Builder::find_constant(std::size_t hash, const std::byte* values, const Shape& shape) const {
  const auto bytes = static_cast<std::size_t>(shape.size() * size_of(dtype_));
  const auto [first, last] = seen_.equal_range(hash);
  for (auto it = first; it != last; ++it) {
    const Node& other = at(it->second);
    if (other.is_constant && other.type.shape == shape &&
        (bytes == 0 || std::memcmp(constant_values(it->second)->data(), values, bytes) == 0)) {
      return it->second;
    }
  }
  return kNone;
}

NodeId Builder::append_constant(std::size_t hash, std::shared_ptr<const Buffer> values,
                                const Shape& shape) {
  Node node;
  node.type = {dtype_, shape, false, false};
  node.is_constant = true;
  node.slot = static_cast<std::int32_t>(graph_.constants.size());
  graph_.constants.push_back(std::move(values));
  const NodeId id = append(std::move(node));
  seen_.emplace(hash, id);
  return id;
}

std::vector<NodeId> Builder::add_graph(const Graph& graph, std::span<const NodeId> inputs) {
  if (inputs.size() != graph.inputs.size()) {
    raise(ErrorKind::type, "buropt: the graph has %zu inputs, got %zu", graph.inputs.size(),
          inputs.size());
  }
  std::vector<NodeId> here;
  here.reserve(graph.nodes.size());
  if (graph.nodes.size() > graph_.nodes.size()) {  // else growth as usual is cheap enough
    graph_.nodes.reserve(graph_.nodes.size() + graph.nodes.size());
    seen_.reserve(seen_.size() + graph.nodes.size());
  }
  std::vector<NodeId> operands;
  for (const Node& node : graph.nodes) {
    if (node.type.dtype != dtype_) {
      raise(ErrorKind::type, "buropt: a %s graph cannot be added to one of %s",
            std::string(name_of(node.type.dtype)).c_str(), std::string(name_of(dtype_)).c_str());
    }
    if (node.is_input()) {
      const NodeId input = inputs[static_cast<std::size_t>(node.slot)];
      const Type& given = at(input).type;
      if (!(given.shape == node.type.shape) || given.csr != node.type.csr) {
        const Input& wanted = graph.inputs[static_cast<std::size_t>(node.slot)];
        raise(ErrorKind::value, "buropt: the graph's input %s has shape %s%s, got %s%s",
              wanted.name.c_str(), node.type.shape.str().c_str(), node.type.csr ? " (sparse)" : "",
              given.shape.str().c_str(), given.csr ? " (sparse)" : "");
      }
      here.push_back(input);
    } else if (node.is_constant) {
      const auto& values = graph.constants[static_cast<std::size_t>(node.slot)];
      const Shape& shape = node.type.shape;
      const auto bytes = static_cast<std::size_t>(shape.size() * size_of(dtype_));
      const std::size_t hash = hash_of(values->data(), bytes);
      const NodeId known = find_constant(hash, values->data(), shape);
      here.push_back(known != kNone ? known : append_constant(hash, values, shape));
    } else {
      operands.clear();
      for (const NodeId input : node.inputs) {
        operands.push_back(here[static_cast<std::size_t>(input)]);
      }
      here.push_back(emit(node.op, operands, node.attributes));
    }
  }
  std::vector<NodeId> outputs;
  for (const NodeId output : graph.outputs) {
    outputs.push_back(here[static_cast<std::size_t>(output)]);
  }
  return outputs;
}

NodeId Builder::constant(std::span<const double> values, const Shape& shape, DType dtype) {
  BUROPT_ASSERT(dtype == dtype_ && static_cast<std::int64_t>(values.size()) == shape.size());
  return dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    std::vector<T> typed;
    for (const double value : values) typed.push_back(static_cast<T>(value));
    return constant(reinterpret_cast<const std::byte*>(typed.data()), shape);
  });
}

NodeId Builder::constant(double value, DType dtype) {
  BUROPT_ASSERT(dtype == dtype_);
  return dispatch(dtype, [&](auto zero) {
    const auto typed = static_cast<decltype(zero)>(value);
    return constant(reinterpret_cast<const std::byte*>(&typed), Shape{});
  });
}

const Buffer* Builder::constant_values(NodeId node) const {
  if (!at(node).is_constant) return nullptr;
  return graph_.constants[static_cast<std::size_t>(at(node).slot)].get();
}

std::optional<double> Builder::uniform_value(NodeId node) const {
  const Buffer* buffer = constant_values(node);
  const std::int64_t size = at(node).type.size();
  if (buffer == nullptr || size == 0) return std::nullopt;
  return dispatch(dtype_, [&](auto zero) -> std::optional<double> {
    using T = decltype(zero);
    const T* values = reinterpret_cast<const T*>(buffer->data());
    const bool uniform = std::all_of(values, values + size, [&](T v) { return v == values[0]; });
    return uniform ? std::optional<double>(values[0]) : std::nullopt;
  });
}

NodeId Builder::emit(OpId id, std::span<const NodeId> inputs, const Attributes& attributes) {
  const Op& record = buropt::op(id);
  if (record.arity >= 0 && static_cast<int>(inputs.size()) != record.arity) {
    raise(ErrorKind::type, "buropt.%s takes %d operands, got %zu", std::string(record.name).c_str(),
          record.arity, inputs.size());
  }
  if (record.simplify != nullptr) {
    const NodeId simpler = record.simplify(*this, inputs, attributes);
    if (simpler != kNone) return simpler;
  }
  const std::size_t hash = hash_of(id, inputs, attributes);
  const auto [first, last] = seen_.equal_range(hash);
  for (auto it = first; it != last && !record.opaque; ++it) {
    const Node& other = at(it->second);
    if (other.op == id &&
        std::equal(inputs.begin(), inputs.end(), other.inputs.begin(), other.inputs.end()) &&
        other.attributes == attributes) {
      return it->second;
    }
  }
  std::vector<Type> types;
  types.reserve(inputs.size());
  bool all_constant = true;
  for (const NodeId input : inputs) {
    types.push_back(at(input).type);
    all_constant = all_constant && at(input).is_constant;
  }
  Node node;
  node.op = id;
  node.inputs.assign(inputs.begin(), inputs.end());
  node.attributes = attributes;
  node.type = record.infer(types, attributes);
  check_size(record.name, node.type.shape);
  if (all_constant && !record.opaque && !node.type.batched && node.type.size() <= kMaxFolded) {
    return fold(id, inputs, attributes, node.type);
  }
  const NodeId added = append(std::move(node));
  seen_.emplace(hash, added);
  return added;
}

NodeId Builder::fold(OpId id, std::span<const NodeId> inputs, const Attributes& attributes,
                     const Type& type) {
  const Op& record = buropt::op(id);
  if (record.alias) return constant(constant_values(inputs[0])->data(), type.shape);
  std::vector<Type> types;
  std::vector<std::byte*> buffers;
  Instruction instruction;
  for (const NodeId input : inputs) {
    types.push_back(at(input).type);
    instruction.in.push_back(static_cast<std::int32_t>(buffers.size()));
    // Kernels only write to their result.
    buffers.push_back(const_cast<std::byte*>(constant_values(input)->data()));
  }
  record.lower({types, type, attributes, 1}, instruction);
  Buffer result(static_cast<std::size_t>(std::max<std::int64_t>(1, type.size()) * size_of(dtype_)));
  Buffer scratch(static_cast<std::size_t>(instruction.scratch_bytes));
  instruction.out = static_cast<std::int32_t>(buffers.size());
  buffers.push_back(result.data());
  instruction.run(instruction, {buffers.data(), 1, scratch.data()});
  return constant(result.data(), type.shape);
}

std::vector<bool> Builder::ancestors(std::span<const NodeId> nodes) const {
  std::vector<bool> needed(graph_.nodes.size(), false);
  for (const NodeId node : nodes) needed[static_cast<std::size_t>(node)] = true;
  for (NodeId id = size() - 1; id >= 0; --id) {
    if (!needed[static_cast<std::size_t>(id)]) continue;
    for (const NodeId input : at(id).inputs) needed[static_cast<std::size_t>(input)] = true;
  }
  return needed;
}

std::shared_ptr<const Graph> Builder::build(std::span<const NodeId> outputs,
                                            std::vector<std::string> names) const {
  BUROPT_ASSERT(outputs.size() == names.size());
  const std::vector<bool> needed = ancestors(outputs);
  static const OpId independent = find_op("independent");
  for (NodeId id = 0; id < size(); ++id) {
    if (needed[static_cast<std::size_t>(id)] && at(id).op == independent) {
      return build_resolved(outputs, needed, std::move(names));
    }
  }
  auto result = std::make_shared<Graph>();
  std::vector<NodeId> renamed(graph_.nodes.size(), kNone);
  for (NodeId id = 0; id < size(); ++id) {
    const Node& node = at(id);
    if (!needed[static_cast<std::size_t>(id)] && !node.is_input()) continue;
    Node copy = node;
    for (NodeId& input : copy.inputs) input = renamed[static_cast<std::size_t>(input)];
    const auto place = static_cast<NodeId>(result->nodes.size());
    if (node.is_input()) {
      result->inputs.push_back({graph_.inputs[static_cast<std::size_t>(node.slot)].name, place});
    } else if (node.is_constant) {
      copy.slot = static_cast<std::int32_t>(result->constants.size());
      result->constants.push_back(graph_.constants[static_cast<std::size_t>(node.slot)]);
    }
    renamed[static_cast<std::size_t>(id)] = place;
    result->nodes.push_back(std::move(copy));
  }
  for (const NodeId output : outputs) {
    result->outputs.push_back(renamed[static_cast<std::size_t>(output)]);
  }
  result->output_names = std::move(names);
  return result;
}

/// The graph with every independent variable replaced by what it is a copy of, so that equal nodes
/// on both sides of it become one.
std::shared_ptr<const Graph> Builder::build_resolved(std::span<const NodeId> outputs,
                                                     const std::vector<bool>& needed,
                                                     std::vector<std::string> names) const {
  static const OpId independent = find_op("independent");
  Builder result(dtype_);
  std::vector<NodeId> renamed(graph_.nodes.size(), kNone);
  for (NodeId id = 0; id < size(); ++id) {
    const Node& node = at(id);
    if (!needed[static_cast<std::size_t>(id)] && !node.is_input()) continue;
    NodeId& place = renamed[static_cast<std::size_t>(id)];
    std::vector<NodeId> inputs = node.inputs;
    for (NodeId& input : inputs) input = renamed[static_cast<std::size_t>(input)];
    if (node.is_input()) {
      place = result.input(graph_.inputs[static_cast<std::size_t>(node.slot)].name, node.type.shape,
                           node.type.batched);
      result.graph_.nodes.back().type = node.type;
    } else if (node.is_constant) {
      place = result.constant(constant_values(id)->data(), node.type.shape);
    } else {
      place = node.op == independent ? inputs[0] : result.emit(node.op, inputs, node.attributes);
    }
  }
  std::vector<NodeId> places;
  for (const NodeId output : outputs) places.push_back(renamed[static_cast<std::size_t>(output)]);
  return result.build(places, std::move(names));
}

}  // namespace buropt
