// What may come from a file must not harm: damaged graphs whose checksum fits, and primitives with
// operands and attributes that nobody would give them. The sanitizers watch.
#include <algorithm>
#include <cstring>
#include <random>

#include "base/crc32.h"
#include "graph/builder.h"
#include "graph/plan.h"
#include "graph/serialize.h"

using namespace buropt;

int fuzz_graphs();

namespace {

constexpr std::size_t kHeader = 24;  // the payload's size stands in front of its checksum

std::shared_ptr<const Graph> example() {
  Builder b(DType::float64);
  const NodeId x = b.input("x", {3, 4}, false);
  const NodeId a = b.csr_input("a", 12);
  const NodeId flat = b.emit("reshape", {x}, Attributes({12}));
  const NodeId product = b.emit("sparse_dot", {a, flat});
  const NodeId turned = b.emit("transpose", {x}, Attributes({1, 0}));
  const NodeId part = b.emit("slice", {turned}, Attributes({0, 0}, {2, 2}, {1, 1}));
  const NodeId square = b.emit("matmul", {x, turned});
  const NodeId sum = b.emit("sum", {square}, Attributes({0, 1}, {0}));
  const NodeId both = b.emit("concatenate", {part, part}, Attributes({0}));
  const NodeId summed = b.emit("cumsum", {x}, Attributes({1}, {1}));
  const NodeId spread = b.emit("slice_vjp", {part}, Attributes({1, 0}, {4, 5}, {2, 3}));
  const NodeId places = b.emit("index_map", {flat}, Attributes({4, 3}, {1, 4}, {0}));
  const NodeId wide = b.emit("broadcast_to", {sum}, Attributes({5}));
  const std::array<double, 2> values{0.5, 2.0};
  const NodeId constant = b.constant(reinterpret_cast<const std::byte*>(values.data()), {2});
  const NodeId scaled = b.emit("multiply", {both, constant});
  return b.build(
      std::vector<NodeId>{b.emit("batch_sum", {product}), wide, scaled, summed, spread, places},
      {"product", "wide", "scaled", "summed", "spread", "places"});
}

std::string with_checksum(std::string payload, const std::string& header) {
  const std::uint64_t size = payload.size();
  const std::uint32_t checksum = crc32(std::as_bytes(std::span(payload)));
  std::string file = header;
  std::memcpy(file.data() + 12, &size, sizeof(size));
  std::memcpy(file.data() + 20, &checksum, sizeof(checksum));
  return file + payload;
}

/// Not every graph has a program: of a sample's value that depends on the batch there is none.
void plan_if_possible(const std::shared_ptr<const Graph>& graph) {
  constexpr std::int64_t kMost = 1 << 20;
  const bool is_small = std::all_of(graph->nodes.begin(), graph->nodes.end(),
                                    [](const Node& node) { return node.type.size() < kMost; });
  try {
    if (is_small) plan(graph);
  } catch (const Error&) {
  }
}

/// Bytes below 128, so that numbers stay small and products of extents do not overflow.
int damaged_graphs(std::mt19937& random, int trials) {
  const std::string good = to_bytes(*example());
  int wrong = 0;
  for (int t = 0; t < trials; ++t) {
    std::string payload = good.substr(kHeader);
    for (auto flips = 1 + random() % 3; flips > 0; --flips) {
      payload[random() % payload.size()] = static_cast<char>(random() % (random() % 2 ? 16 : 128));
    }
    const std::string file = with_checksum(std::move(payload), good.substr(0, kHeader));
    try {
      const auto graph = graph_from_bytes(std::as_bytes(std::span(file)), "the file");
      const std::string again = to_bytes(*graph);
      wrong += to_bytes(*graph_from_bytes(std::as_bytes(std::span(again)), "again")) != again;
      plan_if_possible(graph);
    } catch (const Error& error) {
      wrong += std::strncmp(error.what(), "the file ", 9) != 0;
    }
  }
  return wrong;
}

Type any_type(std::mt19937& random) {
  Type type;
  type.batched = random() % 2 == 0;
  type.csr = type.batched && random() % 4 == 0;
  for (auto rank = type.csr ? 1 : random() % 5; rank > 0; --rank) {
    type.shape.push_back(static_cast<std::int64_t>(random() % 5));
  }
  return type;
}

Attributes any_attributes(std::mt19937& random, const Op& record, const Type& operand) {
  Attributes attributes;
  for (std::size_t i = 0; i < record.attributes.size(); ++i) {
    if (record.attributes[i].empty()) continue;
    auto& list = attributes.lists[i];
    if (random() % 3 == 0) {
      list.assign(operand.shape.begin(), operand.shape.end());
      continue;
    }
    list.resize(random() % 5);
    for (std::int64_t& value : list) value = static_cast<std::int64_t>(random() % 7) - 2;
  }
  return attributes;
}

/// What a shape rule lets pass has a kernel, which runs on constants as the builder folds them.
void any_operations(std::mt19937& random, int trials) {
  for (std::size_t id = 0; id < all_ops().size(); ++id) {
    const Op& record = all_ops()[id];
    const bool is_instruction = record.reverse == nullptr && record.expand == nullptr;
    for (int t = 0; t < trials && !is_instruction; ++t) {
      std::vector<Type> in(record.arity < 0 ? 1 + random() % 3
                                            : static_cast<std::size_t>(record.arity));
      for (Type& type : in) type = &type != in.data() && random() % 3 ? in[0] : any_type(random);
      const Attributes attributes = any_attributes(random, record, in[0]);
      try {
        record.infer(in, attributes);
        Builder b(DType::float64);
        std::vector<NodeId> operands;
        for (const Type& type : in) {
          std::vector<double> values(static_cast<std::size_t>(type.size()));
          for (double& value : values) value = static_cast<double>(random() % 6) - 2;
          operands.push_back(b.constant(values, type.shape, DType::float64));
        }
        b.emit(static_cast<OpId>(id), operands, attributes);
      } catch (const std::exception&) {
        // What the reader makes its error of.
      }
    }
  }
}

}  // namespace

int fuzz_graphs() {
  std::mt19937 random(1);
  any_operations(random, 100);
  return damaged_graphs(random, 5000);
}
