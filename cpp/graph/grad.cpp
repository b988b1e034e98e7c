// Reverse accumulation as a graph transform.
//
// The nodes between the wrt's and the output are visited from the back; each primitive's reverse
// rule emits the cotangents of its operands. An unbatched operand of a batched node collects the
// sum over the samples; a broadcast operand the sum over the broadcast axes. What depends on the
// branch of a `where` is guarded: where its cotangent is 0, its contribution is 0 whatever the
// slope is.
#include <algorithm>

#include "graph/builder.h"

namespace buropt {
namespace {

class Reverse {
 public:
  Reverse(Builder& builder, NodeId output, std::span<const NodeId> wrt)
      : b_(builder), output_(output), wrt_(wrt.begin(), wrt.end()) {}

  std::vector<NodeId> run() {
    output_ = expand_derived(output_);
    mark_influenced();
    mark_guarded();
    cotangents_.assign(static_cast<std::size_t>(b_.size()), kNone);
    cotangents_[index(output_)] = b_.constant(1.0, b_.dtype());
    for (NodeId node = output_; node >= 0; --node) {
      if (influenced_[index(node)] && cotangents_[index(node)] != kNone) visit(node);
    }
    std::vector<NodeId> result;
    for (const NodeId node : wrt_) result.push_back(finished(node));
    return result;
  }

 private:
  static std::size_t index(NodeId node) { return static_cast<std::size_t>(node); }

  /// Fused derivative instructions have no reverse rule: put their formulas in their place.
  NodeId expand_derived(NodeId output) {
    const std::vector<bool> needed = b_.ancestors(std::array{output});
    std::vector<NodeId> renamed(index(output) + 1);
    bool changed = false;
    for (NodeId id = 0; id <= output; ++id) {
      renamed[index(id)] = id;
      // A wrt stands for itself: how it was computed plays no part, so it keeps its number.
      const bool is_wrt = std::find(wrt_.begin(), wrt_.end(), id) != wrt_.end();
      if (!needed[index(id)] || is_wrt || b_.at(id).op == kNoOp) continue;
      const Op& record = op(b_.at(id).op);
      std::vector<NodeId> inputs = b_.at(id).inputs;
      bool moved = false;
      for (NodeId& input : inputs) {
        moved = moved || renamed[index(input)] != input;
        input = renamed[index(input)];
      }
      const Attributes attributes = b_.at(id).attributes;
      if (record.expand != nullptr && record.reverse == nullptr) {
        renamed[index(id)] = with_type(record.expand(b_, inputs, attributes), b_.type(id));
        changed = true;
      } else if (moved) {
        renamed[index(id)] = b_.emit(b_.at(id).op, inputs, attributes);
      }
    }
    return changed ? renamed[index(output)] : output;
  }

  /// Nodes that depend on a wrt.
  void mark_influenced() {
    influenced_.assign(static_cast<std::size_t>(b_.size()), false);
    for (const NodeId node : wrt_) influenced_[index(node)] = true;
    for (NodeId id = 0; id < b_.size(); ++id) {
      for (const NodeId input : b_.at(id).inputs) {
        if (influenced_[index(input)]) influenced_[index(id)] = true;
      }
    }
  }

  /// Nodes on which the branch of a `where` depends.
  void mark_guarded() {
    static const OpId where = find_op("where");
    std::vector<NodeId> branches;
    const std::vector<bool> needed = b_.ancestors(std::array{output_});
    for (NodeId id = 0; id <= output_; ++id) {
      if (!needed[index(id)] || b_.at(id).op != where) continue;
      branches.insert(branches.end(), b_.at(id).inputs.begin() + 1, b_.at(id).inputs.end());
    }
    guarded_ = branches.empty() ? std::vector<bool>(static_cast<std::size_t>(b_.size()), false)
                                : b_.ancestors(branches);
  }

  void visit(NodeId node) {
    const Node view = b_.at(node);  // a copy: emitting moves the nodes
    if (view.op == kNoOp) return;
    const Op& record = op(view.op);
    BUROPT_ASSERT(record.reverse != nullptr);
    NodeId cotangent = cotangents_[index(node)];
    if (!record.elementwise) cotangent = with_type(cotangent, view.type);
    const bool guarded = guarded_[index(node)];
    const bool guarded_product = guarded && record.name == "matmul";
    const std::vector<NodeId> dead =
        guarded_product ? dead_lines(view, cotangent) : std::vector<NodeId>();
    const std::vector<NodeId> inputs = guarded_product ? without_dead(view, dead) : view.inputs;
    std::vector<NodeId> contributions(view.inputs.size(), kNone);
    record.reverse(b_, {node, inputs, view.attributes}, cotangent, contributions);
    for (std::size_t k = 0; k < contributions.size(); ++k) {
      if (contributions[k] == kNone || !influenced_[index(view.inputs[k])]) continue;
      NodeId contribution = contributions[k];
      if (guarded && record.elementwise) {
        contribution = guard(b_.emit("equal", {cotangent, zero()}), contribution);
      } else if (guarded_product && (!view.type.batched || b_.type(view.inputs[k]).batched)) {
        contribution = guard(dead[k], contribution);
      }
      add(view.inputs[k],
          with_type(contribution, contribution_type(view, record, k, contribution)));
    }
  }

  NodeId zero() { return b_.constant(0.0, b_.dtype()); }

  /// 0 in place of NaN where the mask holds. What is a number stays: it is 0 there already, and
  /// must keep its own derivative by the cotangent.
  NodeId guard(NodeId mask, NodeId contribution) {
    const NodeId is_nan = b_.emit("not_equal", {contribution, contribution});
    return b_.emit("where", {b_.emit("logical_and", {mask, is_nan}), zero(), contribution});
  }

  /// Of a matrix product: where a row of the cotangent is all 0, in the layout of the first
  /// operand, and where a column is, in the layout of the second.
  std::vector<NodeId> dead_lines(const Node& node, NodeId cotangent) {
    const NodeId size = b_.emit("absolute", {cotangent});
    std::vector<NodeId> dead;
    for (int k = 0; k < 2; ++k) {
      const std::int64_t axis = k == 0 ? 1 : 0;
      NodeId lines = b_.emit("equal", {b_.emit("sum", {size}, Attributes({axis}, {1})), zero()});
      const auto& transposed = node.attributes[k];
      if (!transposed.empty() && transposed[0] != 0) {
        lines = b_.emit("transpose", {lines}, Attributes({1, 0}));
      }
      dead.push_back(lines);
    }
    return dead;
  }

  /// A product's operands with 0 in their dead lines, so that no sum meets what they hold. An
  /// operand that all samples share stays as it is.
  std::vector<NodeId> without_dead(const Node& node, const std::vector<NodeId>& dead) {
    std::vector<NodeId> inputs = node.inputs;
    for (std::size_t k = 0; k < 2; ++k) {
      if (b_.type(inputs[k]).batched != node.type.batched) continue;
      inputs[k] = b_.emit("where", {dead[k], zero(), inputs[k]});
    }
    return inputs;
  }

  /// The type that a contribution must have before it is reduced to its operand's.
  Type contribution_type(const Node& node, const Op& record, std::size_t k, NodeId contribution) {
    Type type = b_.type(node.inputs[k]);
    if (record.elementwise) type.shape = node.type.shape;
    type.batched = b_.type(contribution).batched ||
                   (record.batching == Batching::follows && node.type.batched);
    if (b_.type(node.inputs[k]).batched) type.batched = true;
    return type;
  }

  /// The value spread to the given shape and batching.
  NodeId with_type(NodeId value, const Type& type) {
    if (!(b_.type(value).shape == type.shape)) {
      value = b_.emit("broadcast_to", {value}, shape_attribute(type.shape));
    }
    if (type.batched) value = b_.emit("to_batched", {value});
    return value;
  }

  void add(NodeId node, NodeId contribution) {
    const Type target = b_.type(node);
    if (b_.type(contribution).batched && !target.batched) {
      contribution = b_.emit("batch_sum", {unspread(contribution, target)});
    }
    contribution = unspread(contribution, target);
    NodeId& total = cotangents_[index(node)];
    total = total == kNone ? contribution : b_.emit("add", {total, contribution});
  }

  /// Sums over the axes along which the operand was broadcast.
  NodeId unspread(NodeId value, const Type& target) {
    const Shape from = b_.type(value).shape;
    if (from == target.shape) return value;
    const int skip = from.rank() - target.shape.rank();
    std::vector<std::int64_t> axes;
    for (int axis = 0; axis < from.rank(); ++axis) {
      if (axis < skip || (target.shape[axis - skip] == 1 && from[axis] != 1)) axes.push_back(axis);
    }
    const NodeId sum = b_.emit("sum", {value}, Attributes(axes, {0}));
    return b_.emit("reshape", {sum}, shape_attribute(target.shape));
  }

  NodeId finished(NodeId node) {
    const Type type = b_.type(node);
    const NodeId cotangent = cotangents_[index(node)];
    return with_type(cotangent == kNone ? b_.constant(0.0, b_.dtype()) : cotangent, type);
  }

  static Attributes shape_attribute(const Shape& shape) {
    return Attributes({shape.begin(), shape.end()});
  }

  Builder& b_;
  NodeId output_;
  std::vector<NodeId> wrt_;
  std::vector<bool> influenced_;
  std::vector<bool> guarded_;
  std::vector<NodeId> cotangents_;
};

}  // namespace

std::vector<NodeId> grad(Builder& builder, NodeId output, std::span<const NodeId> wrt) {
  const Type type = builder.type(output);
  if (type.shape.rank() != 0 || type.batched) {
    raise(ErrorKind::type,
          "buropt.grad: the function must return a scalar, got an array of shape %s",
          type.shape.str().c_str());
  }
  return Reverse(builder, output, wrt).run();
}

}  // namespace buropt
