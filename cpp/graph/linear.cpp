#include "graph/linear.h"

#include "graph/builder.h"
#include "graph/transform.h"

namespace buropt {
namespace {

constexpr NodeId kParameters = 0;  // number of their input

class Reader {
 public:
  explicit Reader(const Graph& graph) : g_(graph), part_(graph.nodes.size(), Part::other) {}

  std::optional<LinearLoss> run() {
    const std::vector<bool> needed = ancestors();
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      if (needed[i] && !classify(static_cast<NodeId>(i))) return std::nullopt;
    }
    if (loss_.features < 0) return std::nullopt;
    return write(needed);
  }

 private:
  /// parameters, row: the vector x or the row a, in whatever shape. product: a'x. after: what is
  /// computed from it. other: what depends on neither.
  enum class Part : std::uint8_t { other, parameters, row, product, after };

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  Part part(NodeId node) const { return part_[at(node)]; }

  std::vector<bool> ancestors() const {
    std::vector<bool> needed(g_.nodes.size(), false);
    needed[at(g_.outputs[0])] = true;
    for (std::size_t i = g_.nodes.size(); i-- > 0;) {
      if (!needed[i]) continue;
      for (const NodeId input : g_.nodes[i].inputs) needed[at(input)] = true;
    }
    return needed;
  }

  /// Says which part a node is; false if there is no place for it in a linear model.
  bool classify(NodeId id) {
    const Node& node = g_.node(id);
    Part& mine = part_[at(id)];
    if (node.is_input()) {
      if (node.slot == kParameters) {
        mine = Part::parameters;
        return node.type.shape.rank() == 1;
      }
      // Of the data, a row of features is the one that is not a number.
      if (node.type.shape.rank() == 0) return true;
      mine = Part::row;
      return node.type.shape.rank() == 1;
    }
    if (node.is_constant) return true;
    bool has_parameters = false;
    bool has_row = false;
    bool has_after = false;
    for (const NodeId input : node.inputs) {
      has_parameters = has_parameters || part(input) == Part::parameters;
      has_row = has_row || part(input) == Part::row;
      has_after = has_after || part(input) == Part::product || part(input) == Part::after;
    }
    if (!has_parameters && !has_row) {
      mine = has_after ? Part::after : Part::other;
      return true;
    }
    if (has_after) return false;
    if (op(node.op).alias) {
      mine = part(node.inputs[0]);
      return true;
    }
    mine = Part::product;
    return has_parameters && has_row && is_product(node);
  }

  /// A product of two vectors, of which only one row of data may be the second factor.
  bool is_product(const Node& node) {
    static const OpId matmul = find_op("matmul");
    static const OpId sparse_dot = find_op("sparse_dot");
    if ((node.op != matmul && node.op != sparse_dot) || node.type.size() != 1) return false;
    for (const NodeId input : node.inputs) {
      if (part(input) != Part::row) continue;
      NodeId source = input;
      while (g_.node(source).op != kNoOp) source = g_.node(source).inputs[0];
      const std::int32_t number = g_.node(source).slot;
      if (loss_.features >= 0 && loss_.features != number) return false;
      loss_.features = number;
    }
    return true;
  }

  /// phi, and its derivative, with the product as an input.
  LinearLoss write(const std::vector<bool>& needed) {
    const DType dtype = g_.nodes.front().type.dtype;
    Builder b(dtype);
    const NodeId z = b.input("z", Shape{}, false);
    std::vector<NodeId> here(g_.nodes.size(), kNone);
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const Node& node = g_.nodes[i];
      if (!needed[i] || part_[i] == Part::parameters || part_[i] == Part::row) continue;
      if (node.is_input()) {
        loss_.others.push_back(node.slot);
        here[i] = b.input(g_.inputs[at(node.slot)].name, Shape{}, false);
      } else if (node.is_constant) {
        here[i] = b.constant(g_.constants[at(node.slot)]->data(), node.type.shape);
      } else if (part_[i] == Part::product) {
        here[i] = with_shape(b, z, node.type.shape);
      } else {
        std::vector<NodeId> operands;
        for (const NodeId input : node.inputs) operands.push_back(here[at(input)]);
        here[i] = b.emit(node.op, operands, node.attributes);
      }
    }
    const NodeId slope = grad(b, here[at(g_.outputs[0])], std::array{z})[0];
    loss_.slope = b.build(std::array{slope}, {"slope"});
    return std::move(loss_);
  }

  static NodeId with_shape(Builder& b, NodeId node, const Shape& shape) {
    if (shape.rank() == 0) return node;
    return b.emit("reshape", {node}, Attributes({shape.begin(), shape.end()}));
  }

  const Graph& g_;
  std::vector<Part> part_;
  LinearLoss loss_;
};

}  // namespace

std::optional<LinearLoss> linear_loss(const Graph& graph) { return Reader(graph).run(); }

}  // namespace buropt
