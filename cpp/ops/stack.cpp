#include "ops/stack.h"

#include <algorithm>
#include <string>

#include "ops/axes.h"
#include "ops/loop.h"

namespace buropt {
namespace {

/// The place of every matrix of an operand, in the order of the common leading axes.
std::vector<std::int64_t> places(const Type& type, const Shape& stack) {
  const Shape own = leading_axes(type);
  const auto strides = type.shape.strides();
  std::vector<std::int64_t> result;
  for (std::int64_t i = 0; i < stack.size(); ++i) {
    std::int64_t rest = i;
    std::int64_t place = 0;
    for (int axis = stack.rank() - 1; axis >= 0; --axis) {
      const int k = axis - (stack.rank() - own.rank());
      if (k >= 0 && own[k] != 1) place += rest % stack[axis] * strides[static_cast<std::size_t>(k)];
      rest /= stack[axis];
    }
    result.push_back(place);
  }
  return result;
}

}  // namespace

MatrixSize matrix_size(std::string_view op, const Type& type) {
  const std::string name(op);
  if (type.csr) {
    raise(ErrorKind::type,
          "buropt.%s: a sparse row only supports products with a vector or matrix (a @ x)",
          name.c_str());
  }
  const int rank = type.shape.rank();
  if (rank < 2) {
    raise(ErrorKind::value, "buropt.%s: an array of shape %s is not a matrix", name.c_str(),
          type.shape.str().c_str());
  }
  return {type.shape[rank - 2], type.shape[rank - 1]};
}

std::int64_t square_size(std::string_view op, const Type& type) {
  const MatrixSize size = matrix_size(op, type);
  if (size.rows != size.columns) {
    raise(ErrorKind::value, "buropt.%s: the last two axes of an array of shape %s differ",
          std::string(op).c_str(), type.shape.str().c_str());
  }
  return size.rows;
}

Shape leading_axes(const Type& type) {
  const auto rank = static_cast<std::size_t>(type.shape.rank());
  return Shape(std::span<const std::int64_t>(type.shape.begin(), rank - 2));
}

Shape broadcast_leading_axes(std::string_view op, std::span<const Type> in) {
  std::vector<Type> stacks;
  for (const Type& type : in) {
    stacks.push_back(type);
    stacks.back().shape = leading_axes(type);
  }
  return broadcast_shapes(op, stacks);
}

Shape with_axes(Shape shape, std::initializer_list<std::int64_t> extents) {
  for (const std::int64_t extent : extents) shape.push_back(extent);
  return shape;
}

NodeId multiply_matrices(Emitter& e, NodeId a, NodeId b, bool transpose_a, bool transpose_b) {
  return e.emit("matmul", {a, b}, Attributes({transpose_a}, {transpose_b}));
}

NodeId product_for(Emitter& e, NodeId operand, NodeId a, NodeId b, bool transpose_a,
                   bool transpose_b) {
  const Type type = e.type(operand);
  const Shape stack = leading_axes(e.type(a));
  if (leading_axes(type).size() == 1 && stack.rank() > 0 && stack == leading_axes(e.type(b))) {
    const Attributes summing({transpose_a}, {transpose_b}, {1});
    const NodeId sum = e.emit("matmul", {a, b}, summing);
    return e.emit("reshape", {sum}, Attributes({type.shape.begin(), type.shape.end()}));
  }
  return sum_to_shape(e, multiply_matrices(e, a, b, transpose_a, transpose_b), type.shape);
}

NodeId transpose_matrices(Emitter& e, NodeId x) {
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < e.type(x).shape.rank(); ++axis) axes.push_back(axis);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return e.emit("transpose", {x}, Attributes(axes));
}

NodeId sum_to_shape(Emitter& e, NodeId node, const Shape& shape) {
  const Shape from = e.type(node).shape;
  if (from == shape) return node;
  const int skip = from.rank() - shape.rank();
  std::vector<std::int64_t> axes;
  for (int axis = 0; axis < from.rank(); ++axis) {
    if (axis < skip || (shape[axis - skip] == 1 && from[axis] != 1)) axes.push_back(axis);
  }
  const NodeId sum = e.emit("sum", {node}, Attributes(axes, {0}));
  return e.emit("reshape", {sum}, Attributes({shape.begin(), shape.end()}));
}

NodeId as_one_by_one(Emitter& e, NodeId node) {
  const Shape shape = with_axes(e.type(node).shape, {1, 1});
  return e.emit("reshape", {node}, Attributes({shape.begin(), shape.end()}));
}

NodeId without_dead(Emitter& e, const NodeView& node, NodeId cotangent, NodeId contribution) {
  if (!node.guarded) return contribution;
  const NodeId zero = e.constant(0, e.type(cotangent).dtype);
  const std::int64_t rank = e.type(cotangent).shape.rank();
  const NodeId size = e.emit("absolute", {cotangent});
  const NodeId total = e.emit("sum", {size}, Attributes({rank - 2, rank - 1}, {1}));
  const NodeId dead = e.emit("equal", {total, zero});
  return without_nan(e, dead, contribution);
}

void append_stack(const LowerContext& c, std::int64_t result_size, Instruction& s) {
  BUROPT_ASSERT(c.in.size() <= kMaxStackOperands);
  const Shape stack = broadcast_leading_axes("stack", c.in);
  s.numbers.push_back(stack.size());
  s.numbers.push_back(result_size);
  for (const Type& type : c.in) {
    s.numbers.push_back(type.batched ? type.size() : 0);
    const std::vector<std::int64_t> at = places(type, stack);
    s.numbers.insert(s.numbers.end(), at.begin(), at.end());
  }
}

}  // namespace buropt
