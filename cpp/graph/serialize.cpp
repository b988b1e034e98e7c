#include "graph/serialize.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "base/crc32.h"
#include "base/error.h"

namespace buropt {
namespace {

static_assert(std::endian::native == std::endian::little, "constants are written as they lie");

/// The first byte is not text, and a transfer that changes line ends changes the last ones.
constexpr std::string_view kSignature("\211BOG\r\n\032\n", 8);
constexpr std::size_t kHeader = 8 + 4 + 8 + 4;

enum Kind : std::uint8_t { kInput, kConstant, kFirstOp };
enum Flag : std::uint8_t { kBatched = 1, kCsr = 2 };

// ---- Writing -----------------------------------------------------------------------------------

class Writer {
 public:
  void byte(std::uint8_t value) { text_.push_back(static_cast<char>(value)); }
  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) byte(static_cast<std::uint8_t>(value | 0x80));
    byte(static_cast<std::uint8_t>(value));
  }
  void count(std::size_t value) { number(value); }
  void id(std::int64_t value) { number(static_cast<std::uint64_t>(value)); }
  void integer(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    number((bits << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0));
  }
  void string(std::string_view value) {
    count(value.size());
    text_.append(value);
  }
  template <class T>
  void fixed(T value) {
    raw(&value, sizeof(value));
  }
  void raw(const void* data, std::size_t bytes) {
    text_.append(static_cast<const char*>(data), bytes);
  }
  void type(const Type& type) {
    byte(static_cast<std::uint8_t>((type.batched ? kBatched : 0) | (type.csr ? kCsr : 0)));
    count(static_cast<std::size_t>(type.shape.rank()));
    for (const std::int64_t extent : type.shape) id(extent);
  }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void write_payload(const Graph& graph, Writer& w) {
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

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4) return false;
    std::uint32_t code = lead & (0x3FU >> more);
    for (int k = 0; k < more; ++k, ++i) {
      if (i == text.size() || (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return false;
      code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3FU);
    }
    const bool is_surrogate = code >= 0xD800 && code < 0xE000;
    if (is_surrogate || code > 0x10FFFF || (more == 2 && code < 0x800) ||
        (more == 3 && code < 0x10000)) {
      return false;
    }
  }
  return true;
}

bool is_word(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// Names nothing but what it was given; `fail` ends the reading with the one error.
class Reader {
 public:
  Reader(std::span<const std::byte> bytes, const std::string& name) : rest_(bytes), name_(name) {}

  [[noreturn]] void fail(const std::string& what) const {
    raise(ErrorKind::value, "%s does not hold a valid graph: %s. Save it again.", name_.c_str(),
          what.c_str());
  }

  std::size_t remaining() const { return rest_.size(); }

  const std::byte* raw(std::size_t bytes) {
    if (bytes > rest_.size()) fail("it ends too early");
    const std::byte* data = rest_.data();
    rest_ = rest_.subspan(bytes);
    return data;
  }
  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const auto byte = std::to_integer<std::uint64_t>(*raw(1));
      if (shift == 63 && byte > 1) break;
      value |= (byte & 0x7F) << shift;
      if (byte < 0x80) return value;
    }
    fail("a number is longer than 64 bits");
  }
  /// A number below the limit.
  std::uint64_t below(std::uint64_t limit, const char* what) {
    const std::uint64_t value = number();
    if (value >= limit) {
      fail(std::string(what) + " " + std::to_string(value) + " is out of range");
    }
    return value;
  }
  /// How many things follow, of at least `each` bytes.
  std::size_t count(std::size_t each = 1) {
    const std::uint64_t value = number();
    if (value > rest_.size() / each) fail("it ends too early");
    return static_cast<std::size_t>(value);
  }
  std::int64_t integer() {
    const std::uint64_t bits = number();
    return static_cast<std::int64_t>((bits >> 1) ^ ((bits & 1) != 0 ? ~std::uint64_t{0} : 0));
  }
  std::string string() {
    const std::size_t bytes = count();
    std::string text(reinterpret_cast<const char*>(raw(bytes)), bytes);
    if (!is_utf8(text) || text.find('\0') != std::string::npos) fail("a name is not text");
    return text;
  }
  Type type(DType dtype) {
    Type type;
    type.dtype = dtype;
    const std::uint64_t flags = below(2 * kCsr, "the flag of a type");
    type.batched = (flags & kBatched) != 0;
    type.csr = (flags & kCsr) != 0;
    for (std::uint64_t rank = below(kMaxRank + 1, "the rank"); rank > 0; --rank) {
      type.shape.push_back(
          static_cast<std::int64_t>(below(std::numeric_limits<std::int64_t>::max(), "an extent")));
    }
    if (!type.shape.is_sane()) fail("the shape " + type.shape.str() + " is too large");
    return type;
  }

 private:
  std::span<const std::byte> rest_;
  const std::string& name_;
};

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

  Reader r_;
  const std::string& name_;
  std::shared_ptr<Graph> graph_;
  DType dtype_ = DType::float64;
  std::vector<OpId> ops_;
  std::size_t found_inputs_ = 0;
};

}  // namespace

std::string to_bytes(const Graph& graph) {
  Writer payload;
  write_payload(graph, payload);
  const std::string& text = payload.text();
  Writer file;
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
