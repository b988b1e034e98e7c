// Stacks of matrices, the operands of linear algebra: (..., m, n), with leading axes that broadcast
// as in NumPy, and any mix of batched and unbatched operands.
#pragma once

#include <array>

#include "math/lanes.h"
#include "ops/op.h"

namespace buropt {

/// The last two extents of a stack.
struct MatrixSize {
  std::int64_t rows, columns;
  std::int64_t size() const noexcept { return rows * columns; }
};

/// The size of an operand's matrices; raises when it has less than two axes or is a sparse row.
MatrixSize matrix_size(std::string_view op, const Type& type);

/// Their number of rows; raises when they are not square.
std::int64_t square_size(std::string_view op, const Type& type);

/// The leading axes of an operand, and of several together.
Shape leading_axes(const Type& type);
Shape broadcast_leading_axes(std::string_view op, std::span<const Type> in);

/// Appends axes to a shape.
Shape with_axes(Shape shape, std::initializer_list<std::int64_t> extents);

/// op(a) op(b) of the matrices in two stacks.
NodeId multiply_matrices(Emitter& e, NodeId a, NodeId b, bool transpose_a, bool transpose_b);

/// The same as a contribution to the cotangent of an operand: summed over the axes along which that
/// was broadcast, while the product is formed if these are all leading axes.
NodeId product_for(Emitter& e, NodeId operand, NodeId a, NodeId b, bool transpose_a,
                   bool transpose_b);

/// The last two axes exchanged.
NodeId transpose_matrices(Emitter& e, NodeId x);

/// The sum over the axes along which an operand of this shape was broadcast.
NodeId sum_to_shape(Emitter& e, NodeId node, const Shape& shape);

/// A number for each matrix (...,) as a matrix (..., 1, 1) that broadcasts.
NodeId as_one_by_one(Emitter& e, NodeId node);

/// A contribution to the cotangent of a stack, with 0 in place of NaN in the matrices whose own
/// part of the node's cotangent is all 0, if the node is guarded.
NodeId without_dead(Emitter& e, const NodeView& node, NodeId cotangent, NodeId contribution);

/// Appends to instruction.numbers how to walk the matrices: their count and the result's elements
/// for each, then of every operand the elements from one sample to the next and the place of each
/// matrix. Stack indices run over the leading axes of all operands together.
void append_stack(const LowerContext& context, std::int64_t result_size, Instruction& instruction);

inline constexpr std::size_t kMaxStackOperands = 8;

/// Calls f(operands, result) for every matrix of every sample, or for a part of each one's if the
/// instruction splits; `from` is where append_stack began.
template <class T, class F>
void for_matrices(const Instruction& s, const Frame& frame, std::size_t from, F&& f) noexcept {
  const std::int64_t* n = s.numbers.data() + from;
  const std::int64_t count = n[0];
  const std::int64_t rows = s.rows(frame);
  const std::int64_t begin = part_begin(count, frame.parts, frame.part);
  const std::int64_t end = part_begin(count, frame.parts, frame.part + 1);
  std::array<const T*, kMaxStackOperands> operands{};
  for (std::int64_t row = 0; row < rows; ++row) {
    T* out = buffer_as<T>(frame, s.out) + (row * count + begin) * n[1];
    for (std::int64_t i = begin; i < end; ++i, out += n[1]) {
      const std::int64_t* place = n + 2;
      for (std::size_t k = 0; k < s.in.size(); ++k, place += 1 + count) {
        operands[k] = buffer_as<const T>(frame, s.in[k]) + row * place[0] + place[1 + i];
      }
      f(operands, out);
    }
  }
}

}  // namespace buropt
