// Places of elements in arrays, as values of a graph: what restrict.cpp computes with.
#pragma once

#include <vector>

#include "graph/builder.h"

namespace buropt {

using Extents = std::vector<std::int64_t>;

inline Extents extents_of(const Shape& shape) { return {shape.begin(), shape.end()}; }

/// Emits nodes. Places are flat numbers of elements, one axis of them.
class PlaceArithmetic {
 public:
  explicit PlaceArithmetic(Builder& builder) : b_(builder) {}

  std::int64_t count(NodeId places) const { return b_.type(places).size(); }
  NodeId zero() { return b_.constant(0.0, b_.dtype()); }
  NodeId reshape(NodeId node, Extents shape) {
    return b_.emit("reshape", {node}, Attributes(std::move(shape)));
  }
  NodeId broadcast(NodeId node, Extents shape) {
    return b_.emit("broadcast_to", {node}, Attributes(std::move(shape)));
  }
  NodeId sum_rows(NodeId matrix) { return b_.emit("sum", {matrix}, Attributes({1}, {0})); }

  /// Places in an array of this shape as places in one with these strides.
  NodeId map(NodeId places, const Shape& shape, const Extents& strides, std::int64_t offset = 0);
  /// For each place, the places at these offsets from it: one flat list.
  NodeId spread(NodeId places, const Extents& offsets);
  /// Every offset with n multiples of a stride added.
  static Extents spread(const Extents& offsets, std::int64_t n, std::int64_t stride);
  /// Strides of an operand in an array that it is broadcast to.
  static Extents broadcast_strides(const Shape& shape, const Shape& target);

 protected:
  Builder& b_;
};

}  // namespace buropt
