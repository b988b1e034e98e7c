// Transforms that add derivatives to the graph a builder holds. All of them append nodes; none
// changes one.
#pragma once

#include <span>
#include <vector>

#include "graph/builder.h"

namespace buropt {

/// What happens where a value that all samples share is used by every sample: its cotangent is
/// summed over the batch, or kept apart sample by sample.
enum class BatchCotangents { summed, per_sample };

/// Reverse mode: sum over the outputs of cotangent^T d output / d wrt, one node per wrt. A
/// cotangent has the shape of its output; it may be batched where the output is not (several
/// cotangents at once, as the samples of a batch), and so is the result then. A wrt that influences
/// no output gets zeros.
std::vector<NodeId> vjp(Builder& builder, std::span<const NodeId> outputs,
                        std::span<const NodeId> cotangents, std::span<const NodeId> wrt,
                        BatchCotangents batch = BatchCotangents::summed);

/// The gradient of a scalar: vjp with cotangent 1.
std::vector<NodeId> grad(Builder& builder, NodeId output, std::span<const NodeId> wrt);

/// Forward mode: d output / d wrt times the tangents, one node per output. A tangent has the shape
/// of its wrt; it may be batched where the wrt is not, and so is the result then.
std::vector<NodeId> jvp(Builder& builder, std::span<const NodeId> outputs,
                        std::span<const NodeId> wrt, std::span<const NodeId> tangents);

/// The elements of the nodes at some places, flat(node)[places], one node for each; the places are
/// values of the graph of shape (m,). Only what those elements need is computed.
std::vector<NodeId> restrict_to(Builder& builder, std::span<const NodeId> nodes,
                                std::span<const NodeId> places);

/// The same values with the formulas of fused derivatives, which have no derivative rule, written
/// out. A wrt keeps its number.
std::vector<NodeId> expand_fused(Builder& builder, std::span<const NodeId> outputs,
                                 std::span<const NodeId> wrt);

/// The value spread to the given shape, and to the batch if the type is batched.
NodeId with_type(Builder& builder, NodeId value, const Type& type);

/// Flags over all nodes: does it depend on one of these?
std::vector<bool> descendants(const Builder& builder, std::span<const NodeId> nodes);

/// What `where` has to do with the nodes that some outputs need.
struct Selections {
  std::vector<bool> guarded;   ///< it goes into the branch of a `where`, which may leave it out
  std::vector<bool> selected;  ///< it depends on a `where`, whose 0 may be that of what is left out

  Selections(const Builder& builder, std::span<const NodeId> outputs);

  /// A term of a product's derivative, its other factor times something: 0 in place of NaN where
  /// the factor is 0 because a `where` has left something out, infinite or not.
  NodeId times_zero(Builder& builder, NodeId product, std::size_t operand, NodeId term) const;
};

}  // namespace buropt
