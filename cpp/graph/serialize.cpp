#include "graph/serialize.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "base/crc32.h"
#include "base/error.h"
#include "graph/encoding.h"

namespace buropt {
namespace {

/// The first byte is not text, and a transfer that changes line ends changes the last ones.
constexpr std::string_view kSignature("\211BOG\r\n\032\n", 8);
constexpr std::size_t kHeader = 8 + 4 + 8 + 4;

enum Kind : std::uint8_t { kInput, kConstant, kFirstOp };

// ---- Writing -----------------------------------------------------------------------------------

void write_payload(const Graph& graph, Encoder& w) {
  const DType dtype = graph.nodes.empty() ? DType::float64 : graph.nodes[0].type.dtype;
  w.string(name_of(dtype));
  std::unordered_map<OpId, std::uint64_t> numbers;
  std::vector<OpId> used;
  for (const Node& node : graph.nodes) {
    if (node.op != kNoOp && numbers.emplace(node.op, kFirstOp + used.size()).second) {
      used.push_back(node.op);
    }
  }
  w.count(used.size());
  for (const OpId id : used) w.string(op(id).name);
  w.count(graph.inputs.size());
  for (const Input& input : graph.inputs) w.string(input.name);
  w.count(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    if (node.op == kNoOp) {
      w.number(node.is_constant ? kConstant : kInput);
      w.type(node.type);
      if (!node.is_constant) continue;
      w.raw(graph.constants[static_cast<std::size_t>(node.slot)]->data(),
            static_cast<std::size_t>(node.type.size() * size_of(dtype)));
      continue;
    }
    w.number(numbers.at(node.op));
    w.type(node.type);
    w.count(node.inputs.size());
    for (const NodeId input : node.inputs) w.id(input);
    for (const auto& list : node.attributes.lists) {
      w.count(list.size());
      for (const std::int64_t value : list) w.integer(value);
    }
  }
  w.count(graph.outputs.size());
  for (std::size_t k = 0; k < graph.outputs.size(); ++k) {
    w.id(graph.outputs[k]);
    w.string(graph.output_names[k]);
  }
}

// ---- Reading -----------------------------------------------------------------------------------

bool is_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

class GraphReader {
 public:
  GraphReader(std::span<const std::byte> payload, const std::string& name)
      : r_(payload, name), name_(name), graph_(std::make_shared<Graph>()) {}

  std::shared_ptr<const Graph> read() {
    read_dtype();
    read_ops();
    const std::size_t n_inputs = r_.count();
    for (std::size_t k = 0; k < n_inputs; ++k) graph_->inputs.push_back({r_.string(), kNone});
    const std::size_t n_nodes = r_.count(3);
    for (std::size_t k = 0; k < n_nodes; ++k) read_node();
    if (found_inputs_ != n_inputs) r_.fail("an input has no node");
    const std::size_t n_outputs = r_.count(2);
    for (std::size_t k = 0; k < n_outputs; ++k) {
      graph_->outputs.push_back(static_cast<NodeId>(r_.below(n_nodes, "the output")));
      graph_->output_names.push_back(r_.string());
    }
    if (r_.remaining() > 0) r_.fail("something follows its end");
    return graph_;
  }

 private:
  void read_dtype() {
    const std::string dtype = r_.string();
    if (dtype == name_of(DType::float32))
      dtype_ = DType::float32;
    else if (dtype == name_of(DType::float64))
      dtype_ = DType::float64;
    else
      r_.fail("its dtype is '" + dtype + "'");
  }

  void read_ops() {
    const std::size_t n = r_.count();
    for (std::size_t k = 0; k < n; ++k) {
      const std::string primitive = r_.string();
      if (!std::all_of(primitive.begin(), primitive.end(), is_word)) {
        r_.fail("a primitive has no name");
      }
      const std::optional<OpId> id = known_op(primitive);
      if (!id) {
        raise(ErrorKind::value,
              "%s uses the primitive '%s', which this buropt does not have. Update buropt, or save "
              "the graph with this version.",
              name_.c_str(), primitive.c_str());
      }
      if (op(*id).reverse == nullptr && op(*id).expand == nullptr) {
        r_.fail("'" + primitive + "' is an instruction of programs, not a primitive of graphs");
      }
      ops_.push_back(*id);
    }
  }

  static std::optional<OpId> known_op(std::string_view primitive) {
    const auto all = all_ops();
    for (std::size_t k = 0; k < all.size(); ++k) {
      if (all[k].name == primitive) return static_cast<OpId>(k);
    }
    return std::nullopt;
  }

  void read_node() {
    if (graph_->nodes.size() >= static_cast<std::size_t>(std::numeric_limits<NodeId>::max())) {
      r_.fail("it has more than 2^31 nodes");
    }
    const std::uint64_t kind = r_.below(kFirstOp + ops_.size(), "the primitive");
    Node node;
    node.type = r_.type(dtype_);
    if (kind == kInput)
      read_input(node);
    else if (kind == kConstant)
      read_constant(node);
    else
      read_operation(node, ops_[static_cast<std::size_t>(kind - kFirstOp)]);
    graph_->nodes.push_back(std::move(node));
  }

  void read_input(Node& node) {
    if (found_inputs_ == graph_->inputs.size()) r_.fail("an input has no name");
    if (node.type.csr && (!node.type.batched || node.type.shape.rank() != 1)) {
      r_.fail("a sparse input is not a row per sample");
    }
    graph_->inputs[found_inputs_].node = static_cast<NodeId>(graph_->nodes.size());
    node.slot = static_cast<std::int32_t>(found_inputs_++);
  }

  void read_constant(Node& node) {
    if (node.type.batched || node.type.csr) r_.fail("a constant is batched");
    const auto bytes = static_cast<std::size_t>(node.type.size() * size_of(dtype_));
    const std::byte* values = r_.raw(bytes);
    auto buffer = std::make_shared<Buffer>(std::max<std::size_t>(bytes, 1));
    if (bytes > 0) std::memcpy(buffer->data(), values, bytes);
    node.is_constant = true;
    node.slot = static_cast<std::int32_t>(graph_->constants.size());
    graph_->constants.push_back(std::move(buffer));
  }

  void read_operation(Node& node, OpId id) {
    const Op& record = op(id);
    const std::string where =
        "node " + std::to_string(graph_->nodes.size()) + " (" + std::string(record.name) + "): ";
    node.op = id;
    const std::size_t n = r_.count();
    // Rules of primitives with any number of operands count on one.
    if (record.arity >= 0 ? n != static_cast<std::size_t>(record.arity) : n == 0) {
      r_.fail(where + "it has " + std::to_string(n) + " operands");
    }
    std::vector<Type> types;
    for (std::size_t k = 0; k < n; ++k) {
      node.inputs.push_back(static_cast<NodeId>(r_.below(graph_->nodes.size(), "the operand")));
      types.push_back(graph_->node(node.inputs.back()).type);
    }
    for (std::size_t i = 0; i < node.attributes.lists.size(); ++i) {
      auto& list = node.attributes.lists[i];
      list.resize(r_.count());
      for (std::int64_t& value : list) value = r_.integer();
      if (record.attributes[i].empty() && !list.empty()) {
        r_.fail(where + "it has an attribute without a name");
      }
    }
    Type inferred;
    try {
      inferred = record.infer(types, node.attributes);
    } catch (const std::exception& error) {
      r_.fail(where + error.what());
    }
    if (!(inferred == node.type)) {
      r_.fail(where + "its shape is " + inferred.shape.str() + ", not " + node.type.shape.str());
    }
  }

  Decoder r_;
  const std::string& name_;
  std::shared_ptr<Graph> graph_;
  DType dtype_ = DType::float64;
  std::vector<OpId> ops_;
  std::size_t found_inputs_ = 0;
};

}  // namespace

std::string to_bytes(const Graph& graph) {
  Encoder payload;
  write_payload(graph, payload);
  const std::string& text = payload.text();
  Encoder file;
  file.raw(kSignature.data(), kSignature.size());
  file.fixed(kGraphFormat);
  file.fixed(static_cast<std::uint64_t>(text.size()));
  file.fixed(crc32(std::as_bytes(std::span(text))));
  file.raw(text.data(), text.size());
  return file.text();
}

std::shared_ptr<const Graph> graph_from_bytes(std::span<const std::byte> bytes,
                                              const std::string& name) {
  const char* what = name.c_str();
  const std::size_t seen = std::min(bytes.size(), kSignature.size());
  if (seen == 0 || std::memcmp(bytes.data(), kSignature.data(), seen) != 0) {
    raise(ErrorKind::value, "%s is not a graph of buropt. Pass what Graph.to_bytes() gave.", what);
  }
  if (bytes.size() < kHeader) {
    raise(ErrorKind::value, "%s is truncated: it ends after %zu bytes. Copy or save it again.",
          what, bytes.size());
  }
  std::uint32_t version, checksum;
  std::uint64_t size;
  std::memcpy(&version, bytes.data() + 8, sizeof(version));
  std::memcpy(&size, bytes.data() + 12, sizeof(size));
  std::memcpy(&checksum, bytes.data() + 20, sizeof(checksum));
  if (version == 0 || version > kGraphFormat) {
    raise(ErrorKind::value,
          "%s was written by a newer buropt (version %u of the graph format; this one reads up to "
          "%u). Update buropt.",
          what, version, kGraphFormat);
  }
  const std::span<const std::byte> payload = bytes.subspan(kHeader);
  if (size > payload.size()) {
    raise(ErrorKind::value,
          "%s is truncated: %zu bytes follow its header, and it was written with %llu. Copy or "
          "save it again.",
          what, payload.size(), static_cast<unsigned long long>(size));
  }
  if (size < payload.size() || crc32(payload) != checksum) {
    raise(ErrorKind::value, "%s is damaged: its checksum does not fit. Copy or save it again.",
          what);
  }
  return GraphReader(payload, name).read();
}

}  // namespace buropt
