// Forward accumulation as a graph transform.
//
// The nodes from the wrt's on are visited in order, and each gets its tangent: the primitive itself
// applied to its operands' tangents where it is linear, its `forward` rule, or, derived from the
// reverse rule, cotangent rule with the tangent in place of the cotangent (elementwise: its
// Jacobian is diagonal) or the transpose of it. In the branch of a `where`, a factor of 0 that
// comes from a `where` itself, the cotangent of a branch not taken, is 0 times anything.
#include <algorithm>
#include <numeric>

#include "graph/transform.h"

namespace buropt {
namespace {

class Forward {
 public:
  Forward(Builder& builder, std::span<const NodeId> wrt, std::span<const NodeId> tangents)
      : b_(builder), wrt_(wrt.begin(), wrt.end()), given_(tangents.begin(), tangents.end()) {}

  std::vector<NodeId> run(std::span<const NodeId> given) {
    const std::vector<NodeId> outputs = expand_fused(b_, given, wrt_);
    const std::vector<bool> needed = b_.ancestors(outputs);
    const std::vector<bool> influenced = descendants(b_, wrt_);
    const Selections selections(b_, outputs);
    const NodeId end = b_.size();
    tangents_.assign(index(end), kNone);
    std::vector<bool> is_wrt(index(end), false);
    for (std::size_t k = 0; k < wrt_.size(); ++k) {
      is_wrt[index(wrt_[k])] = true;
      tangents_[index(wrt_[k])] = with_type(b_, given_[k], b_.type(wrt_[k]));
    }
    for (NodeId node = 0; node < end; ++node) {
      if (!needed[index(node)] || !influenced[index(node)] || is_wrt[index(node)]) continue;
      const NodeId tangent = tangent_of(node, selections);
      if (tangent != kNone) tangents_[index(node)] = with_type(b_, tangent, b_.type(node));
    }
    std::vector<NodeId> result;
    for (const NodeId output : outputs) {
      const NodeId tangent = tangents_[index(output)];
      result.push_back(tangent == kNone ? zeros(b_.type(output)) : tangent);
    }
    return result;
  }

 private:
  static std::size_t index(NodeId node) { return static_cast<std::size_t>(node); }

  NodeId zeros(const Type& type) { return with_type(b_, b_.constant(0.0, b_.dtype()), type); }

  NodeId tangent_of(NodeId node, const Selections& selections) {
    const Node view = b_.at(node);  // a copy: emitting moves the nodes
    if (view.op == kNoOp) return kNone;
    const Op& record = op(view.op);
    std::vector<NodeId> tangents;
    for (const NodeId input : view.inputs) tangents.push_back(tangents_[index(input)]);
    const auto moves = [](NodeId tangent) { return tangent != kNone; };
    if (std::none_of(tangents.begin(), tangents.end(), moves)) return kNone;
    if (record.forward != nullptr) {
      return record.forward(b_, {node, view.inputs, view.attributes}, tangents);
    }
    if (record.linearity == Linearity::jointly) return jointly(view, tangents);
    NodeId total = kNone;
    for (std::size_t k = 0; k < tangents.size(); ++k) {
      if (tangents[k] == kNone || (record.linearity == Linearity::first && k > 0)) continue;
      NodeId term = record.linearity != Linearity::none ? each(view, k, tangents[k])
                    : record.elementwise ? diagonal(record, node, view, k, tangents[k])
                                         : transposed(record, node, view, k, tangents[k]);
      if (term == kNone) continue;
      term = selections.times_zero(b_, node, k, term);
      total = total == kNone ? term : b_.emit("add", {total, term});
    }
    return total;
  }

  NodeId jointly(const Node& view, std::vector<NodeId> tangents) {
    for (std::size_t k = 0; k < tangents.size(); ++k) {
      if (tangents[k] == kNone) tangents[k] = zeros(b_.type(view.inputs[k]));
    }
    return b_.emit(view.op, tangents, view.attributes);
  }

  NodeId each(const Node& view, std::size_t k, NodeId tangent) {
    std::vector<NodeId> operands = view.inputs;
    operands[k] = tangent;
    return b_.emit(view.op, operands, view.attributes);
  }

  NodeId diagonal(const Op& record, NodeId node, const Node& view, std::size_t k, NodeId tangent) {
    std::vector<NodeId> contributions(view.inputs.size(), kNone);
    record.reverse(b_, {node, view.inputs, view.attributes}, tangent, contributions);
    return contributions[k];
  }

  /// The contribution to operand k is a linear function of the cotangent u; its derivative by u
  /// along the tangent is the tangent of the result.
  NodeId transposed(const Op& record, NodeId node, const Node& view, std::size_t k,
                    NodeId tangent) {
    BUROPT_ASSERT(record.reverse != nullptr);
    Type type = view.type;
    type.batched = type.batched || b_.type(tangent).batched;
    // 1 and not 0, which has a meaning of its own to rules for singular points.
    const NodeId ones = with_type(b_, b_.constant(1.0, b_.dtype()), type);
    const NodeId u = b_.emit("independent", {ones});
    std::vector<NodeId> contributions(view.inputs.size(), kNone);
    record.reverse(b_, {node, view.inputs, view.attributes}, u, contributions);
    if (contributions[k] == kNone) return kNone;
    const std::array outputs{contributions[k]};
    const std::array cotangents{tangent};
    const std::array wrt{u};
    return vjp(b_, outputs, cotangents, wrt, BatchCotangents::per_sample)[0];
  }

  Builder& b_;
  std::vector<NodeId> wrt_;
  std::vector<NodeId> given_;
  std::vector<NodeId> tangents_;
};

}  // namespace

std::vector<NodeId> jvp(Builder& builder, std::span<const NodeId> outputs,
                        std::span<const NodeId> wrt, std::span<const NodeId> tangents) {
  BUROPT_ASSERT(wrt.size() == tangents.size());
  for (std::size_t k = 0; k < wrt.size(); ++k) {
    const Type& value = builder.type(wrt[k]);
    const Type& tangent = builder.type(tangents[k]);
    if (tangent.shape == value.shape) continue;
    raise(ErrorKind::value, "buropt.jvp: the tangent of a value of shape %s has shape %s",
          value.shape.str().c_str(), tangent.shape.str().c_str());
  }
  return Forward(builder, wrt, tangents).run(outputs);
}

}  // namespace buropt
