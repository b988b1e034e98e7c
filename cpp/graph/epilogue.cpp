#include "graph/epilogue.h"

#include <algorithm>
#include <unordered_map>

namespace buropt {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// A matrix product and what has joined it so far: mask(relu((product + bias) + residual)).
struct Product {
  NodeId matmul;
  NodeId bias = kNone;
  NodeId residual = kNone;
  bool relu = false;
  NodeId mask = kNone;
  std::vector<NodeId> nodes{};  ///< that it stands for, besides the last one

  bool is_plain() const { return bias == kNone && residual == kNone && !relu && mask == kNone; }
};

class Joiner {
 public:
  explicit Joiner(const Graph& graph) : g_(graph), readers_(graph.nodes.size(), 0) {
    for (const Node& node : g_.nodes) {
      for (const NodeId input : node.inputs) ++readers_[at(input)];
    }
    for (const NodeId output : g_.outputs) ++readers_[at(output)];
  }

  /// Whether anything joins.
  bool find() {
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) visit(static_cast<NodeId>(i));
    std::erase_if(products_, [](const auto& item) { return item.second.is_plain(); });
    std::erase_if(norms_, [](const auto& item) { return item.second == kNone; });
    return !products_.empty() || !norms_.empty();
  }

  std::shared_ptr<const Graph> joined() const {
    std::vector<bool> gone(g_.nodes.size(), false);
    for (const auto& [last, product] : products_) {
      for (const NodeId node : product.nodes) gone[at(node)] = true;
    }
    auto result = std::make_shared<Graph>();
    result->constants = g_.constants;
    result->inputs = g_.inputs;
    result->output_names = g_.output_names;
    std::vector<NodeId> renamed(g_.nodes.size(), kNone);
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const auto id = static_cast<NodeId>(i);
      const auto append = [&](NodeId number, Node node) {
        for (NodeId& input : node.inputs) input = renamed[at(input)];
        renamed[at(number)] = static_cast<NodeId>(result->nodes.size());
        result->nodes.push_back(std::move(node));
      };
      if (gone[i] || renamed[i] != kNone) continue;
      const auto product = products_.find(id);
      const auto norm = norms_.find(id);
      if (product != products_.end()) {
        append(id, one_node(id, product->second));
      } else if (norm != norms_.end()) {
        const NodeId moments = norm->second;
        if (renamed[at(moments)] == kNone) append(moments, g_.node(moments));
        append(id, with_moments(id, moments));
      } else {
        append(id, g_.nodes[i]);
      }
    }
    for (Input& input : result->inputs) input.node = renamed[at(input.node)];
    for (const NodeId output : g_.outputs) result->outputs.push_back(renamed[at(output)]);
    return result;
  }

 private:
  const Type& type(NodeId node) const { return g_.node(node).type; }

  void visit(NodeId id) {
    static const OpId matmul = find_op("matmul");
    static const OpId add = find_op("add");
    static const OpId relu = find_op("relu");
    static const OpId relu_vjp = find_op("relu_vjp");
    static const OpId layer_norm = find_op("layer_norm_affine");
    static const OpId moments = find_op("layer_norm_moments");
    const Node& node = g_.node(id);
    if (node.op == kNoOp) return;
    if (node.op == layer_norm) {
      norms_[id] = kNone;
    } else if (node.op == moments) {
      for (auto& [norm, found] : norms_) {
        const Node& other = g_.node(norm);
        if (other.inputs[0] == node.inputs[0] && other.attributes == node.attributes) found = id;
      }
    } else if (node.op == matmul && is_one_product(node)) {
      products_[id] = {id};
    } else if (op(node.op).alias) {
      if (Product* product = open(node.inputs[0])) join(id, node.inputs[0], *product);
    } else if (node.op == add) {
      for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
        if (add_to(id, node.inputs[k], node.inputs[1 - k])) return;
      }
    } else if (node.op == relu || node.op == relu_vjp) {
      Product* product = open(node.inputs[0]);
      if (product == nullptr || product->relu || product->mask != kNone) return;
      if (!(type(node.inputs.back()) == type(id))) return;
      if (node.op == relu)
        product->relu = true;
      else
        product->mask = node.inputs[1];
      join(id, node.inputs[0], *product);
    }
  }

  /// All rows of a tile times one matrix.
  bool is_one_product(const Node& node) const {
    const Type& a = type(node.inputs[0]);
    const Type& b = type(node.inputs[1]);
    const auto flag = [&](int list) {
      return !node.attributes[list].empty() && node.attributes[list][0] != 0;
    };
    if (a.shape.rank() != 2 || b.shape.rank() != 2 || flag(2)) return false;
    return !b.batched && !(a.batched && flag(0)) && node.type.shape[1] > 1;
  }

  /// The product that a node is, if it may join its only reader.
  Product* open(NodeId node) {
    const auto found = products_.find(node);
    return found == products_.end() || readers_[at(node)] != 1 ? nullptr : &found->second;
  }

  bool add_to(NodeId id, NodeId value, NodeId other) {
    Product* product = open(value);
    if (product == nullptr || product->relu || product->mask != kNone) return false;
    if (!(type(value) == type(id))) return false;
    const Shape row{type(product->matmul).shape[1]};
    const Shape& shape = type(id).shape;
    const bool is_row = !type(other).batched && type(other).shape == row && shape.rank() > 0 &&
                        shape[shape.rank() - 1] == row[0];
    if (product->bias == kNone && product->residual == kNone && is_row)
      product->bias = other;
    else if (product->residual == kNone && type(other) == type(id))
      product->residual = other;
    else
      return false;
    join(id, value, *product);
    return true;
  }

  /// The product, which `joins` was, is now `id`.
  void join(NodeId id, NodeId joins, Product& product) {
    product.nodes.push_back(joins);
    Product moved = std::move(product);
    products_.erase(joins);
    products_.emplace(id, std::move(moved));
  }

  Node one_node(NodeId last, const Product& p) const {
    const Node& matmul = g_.node(p.matmul);
    Node node = g_.node(last);
    node.op = find_op("matmul_epilogue");
    node.inputs = matmul.inputs;
    for (const NodeId part : {p.bias, p.residual, p.mask}) {
      if (part != kNone) node.inputs.push_back(part);
    }
    const auto flag = [&](int list) {
      return !matmul.attributes[list].empty() ? matmul.attributes[list][0] : 0;
    };
    node.attributes = Attributes({flag(0), flag(1)},
                                 {p.bias != kNone, p.residual != kNone, p.relu, p.mask != kNone},
                                 {node.type.shape.begin(), node.type.shape.end()});
    return node;
  }

  Node with_moments(NodeId norm, NodeId moments) const {
    Node node = g_.node(norm);
    node.op = find_op("layer_norm_affine_with_moments");
    node.inputs.push_back(moments);
    return node;
  }

  const Graph& g_;
  std::vector<std::int32_t> readers_;
  std::unordered_map<NodeId, Product> products_;  ///< by the node that has its value
  std::unordered_map<NodeId, NodeId> norms_;      ///< layer norms and their rows' moments
};

}  // namespace

std::shared_ptr<const Graph> with_epilogues(std::shared_ptr<const Graph> graph) {
  Joiner joiner(*graph);
  return joiner.find() ? joiner.joined() : graph;
}

}  // namespace buropt
