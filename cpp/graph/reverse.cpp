// Reverse accumulation as a graph transform.
//
// The nodes between the wrt's and the outputs are visited from the back; each primitive's reverse
// rule emits the cotangents of its operands. An unbatched operand of a batched node collects the
// sum over the samples; a broadcast operand the sum over the broadcast axes. What depends on the
// branch of a `where` is guarded: where its cotangent is 0, its contribution is 0 whatever the
// slope is.
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "graph/transform.h"
#include "ops/axes.h"

namespace buropt {
namespace {

class Reverse {
 public:
  Reverse(Builder& builder, std::span<const NodeId> wrt, BatchCotangents batch)
      : b_(builder), wrt_(wrt.begin(), wrt.end()), sums_(batch == BatchCotangents::summed) {}

  std::vector<NodeId> run(std::span<const NodeId> given, std::span<const NodeId> cotangents) {
    const std::vector<NodeId> outputs = expand_fused(b_, given, wrt_);
    influenced_ = descendants(b_, wrt_);
    const Selections selections(b_, outputs);
    cotangents_.assign(static_cast<std::size_t>(b_.size()), kNone);
    NodeId last = -1;
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      accumulate(outputs[k], with_type(b_, cotangents[k], b_.type(outputs[k])));
      last = std::max(last, outputs[k]);
    }
    for (NodeId node = last; node >= 0; --node) {
      if (!influenced_[index(node)]) continue;
      merge_slices(node);
      if (cotangents_[index(node)] != kNone) visit(node, selections);
    }
    std::vector<NodeId> result;
    for (const NodeId node : wrt_) {
      merge_slices(node);  // of a wrt above the outputs, nothing; of any other, done
      const NodeId cotangent = cotangents_[index(node)];
      result.push_back(with_type(b_, cotangent == kNone ? zero() : cotangent, b_.type(node)));
    }
    return result;
  }

 private:
  static std::size_t index(NodeId node) { return static_cast<std::size_t>(node); }

  void visit(NodeId node, const Selections& selections) {
    const Node view = b_.at(node);  // a copy: emitting moves the nodes
    if (view.op == kNoOp) return;
    const Op& record = op(view.op);
    BUROPT_ASSERT(record.reverse != nullptr);
    NodeId cotangent = cotangents_[index(node)];
    if (!record.elementwise) cotangent = with_type(b_, cotangent, view.type);
    const bool guarded = selections.guarded[index(node)];
    std::vector<NodeId> contributions(view.inputs.size(), kNone);
    record.reverse(b_, {node, view.inputs, view.attributes, guarded}, cotangent, contributions);
    for (std::size_t k = 0; k < contributions.size(); ++k) {
      if (contributions[k] == kNone || !influenced_[index(view.inputs[k])]) continue;
      NodeId contribution = contributions[k];
      if (guarded && record.elementwise) {
        contribution = without_nan(b_, b_.emit("equal", {cotangent, zero()}), contribution);
        contribution = selections.times_zero(b_, node, k, contribution);
      } else if (guarded && record.linearity == Linearity::none &&
                 (b_.type(contribution).batched || !view.type.batched)) {
        contribution = without_nan(b_, all_zero(cotangent), contribution);
      }
      add(view, k, with_type(b_, contribution, contribution_type(view, record, k, contribution)));
    }
  }

  NodeId zero() { return b_.constant(0.0, b_.dtype()); }

  NodeId all_zero(NodeId cotangent) {
    std::vector<std::int64_t> axes(static_cast<std::size_t>(b_.type(cotangent).shape.rank()));
    std::iota(axes.begin(), axes.end(), std::int64_t{0});
    const NodeId size = b_.emit("absolute", {cotangent});
    return b_.emit("equal", {b_.emit("sum", {size}, Attributes(axes, {0})), zero()});
  }

  /// The type that a contribution must have before it is reduced to its operand's.
  Type contribution_type(const Node& node, const Op& record, std::size_t k, NodeId contribution) {
    Type type = b_.type(node.inputs[k]);
    if (record.elementwise) type.shape = node.type.shape;
    type.batched = type.batched || b_.type(contribution).batched ||
                   (record.batching == Batching::follows && node.type.batched);
    return type;
  }

  /// Adds a contribution to the cotangent of a node's operand k.
  void add(const Node& node, std::size_t k, NodeId contribution) {
    const NodeId operand = node.inputs[k];
    const Type target = b_.type(operand);
    // Cotangents can be batched where the values are not; only samples that share a value sum up.
    const bool shared = node.type.batched && !target.batched && b_.type(contribution).batched;
    if (sums_ && shared) contribution = b_.emit("batch_sum", {unspread(contribution, target)});
    accumulate(operand, unspread(contribution, target));
  }

  /// Parts of an array that was read in many pieces are kept, and put together once.
  void accumulate(NodeId node, NodeId contribution) {
    static const OpId slice_vjp = find_op("slice_vjp");
    if (b_.at(contribution).op == slice_vjp) {
      slices_[node].push_back(contribution);
      return;
    }
    NodeId& total = cotangents_[index(node)];
    total = total == kNone ? contribution : b_.emit("add", {total, contribution});
  }

  void merge_slices(NodeId node) {
    const auto found = slices_.find(node);
    if (found == slices_.end()) return;
    const std::vector<NodeId> parts = std::move(found->second);
    slices_.erase(found);
    NodeId merged = parts[0];
    if (parts.size() > 1) {
      std::vector<NodeId> operands;
      Attributes attributes;
      for (const NodeId part : parts) {
        const Node& slice = b_.at(part);
        operands.push_back(slice.inputs[0]);
        for (const std::size_t list : {std::size_t{0}, std::size_t{2}}) {
          auto& all = attributes.lists[list];
          all.insert(all.end(), slice.attributes.lists[list].begin(),
                     slice.attributes.lists[list].end());
        }
      }
      attributes.lists[1] = b_.at(parts[0]).attributes.lists[1];
      merged = b_.emit(find_op("slices_vjp"), operands, attributes);
    }
    NodeId& total = cotangents_[index(node)];
    total = total == kNone ? merged : b_.emit("add", {total, merged});
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
    return b_.emit("reshape", {sum}, Attributes({target.shape.begin(), target.shape.end()}));
  }

  Builder& b_;
  std::vector<NodeId> wrt_;
  bool sums_;
  std::vector<bool> influenced_;
  std::vector<NodeId> cotangents_;
  std::unordered_map<NodeId, std::vector<NodeId>> slices_;
};

}  // namespace

std::vector<NodeId> vjp(Builder& builder, std::span<const NodeId> outputs,
                        std::span<const NodeId> cotangents, std::span<const NodeId> wrt,
                        BatchCotangents batch) {
  BUROPT_ASSERT(outputs.size() == cotangents.size());
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    const Type& output = builder.type(outputs[k]);
    const Type& cotangent = builder.type(cotangents[k]);
    if (cotangent.shape == output.shape) continue;
    raise(ErrorKind::value, "buropt.vjp: the cotangent of an output of shape %s has shape %s",
          output.shape.str().c_str(), cotangent.shape.str().c_str());
  }
  return Reverse(builder, wrt, batch).run(outputs, cotangents);
}

std::vector<NodeId> grad(Builder& builder, NodeId output, std::span<const NodeId> wrt) {
  const Type type = builder.type(output);
  if (type.shape.rank() != 0 || type.batched) {
    raise(ErrorKind::type,
          "buropt.grad: the function must return a scalar, got an array of shape %s",
          type.shape.str().c_str());
  }
  const NodeId one = builder.constant(1.0, builder.dtype());
  return vjp(builder, std::array{output}, std::array{one}, wrt);
}

}  // namespace buropt
