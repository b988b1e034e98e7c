// What primitives over the last axis share: their shape rule and where their rows lie.
#pragma once

#include <algorithm>
#include <string>

#include "math/rows.h"
#include "ops/axes.h"
#include "ops/op.h"
#include "ops/symbol.h"

namespace buropt {

/// Operands of one shape with at least one axis; the result has that shape too.
inline Type infer_rows(std::string_view name, std::span<const Type> in) {
  Type out = in[0];
  for (const Type& type : in) {
    if (dense(name, type).shape.rank() == 0) {
      raise(ErrorKind::value, "buropt.%.*s: a value of shape () has no last axis",
            static_cast<int>(name.size()), name.data());
    }
    if (!(type.shape == in[0].shape)) {
      raise(ErrorKind::value, "buropt.%.*s: shapes %s and %s differ", static_cast<int>(name.size()),
            name.data(), in[0].shape.str().c_str(), type.shape.str().c_str());
    }
    out.batched = out.batched || type.batched;
  }
  return out;
}

/// The shape without its last axis.
inline Shape without_last_axis(const Shape& shape) {
  Shape result;
  for (int axis = 0; axis + 1 < shape.rank(); ++axis) result.push_back(shape[axis]);
  return result;
}

/// Instruction::numbers of row kernels: rows of a sample, length of a row, and for each operand
/// whether it is batched.
inline std::vector<std::int64_t> row_numbers(std::span<const Type> in, const Shape& shape) {
  const int rank = shape.rank();
  std::vector<std::int64_t> numbers{shape.product(0, rank - 1), shape[rank - 1]};
  for (const Type& type : in) numbers.push_back(type.batched);
  return numbers;
}

/// The rows of operand k in a tile. An unbatched operand has the same rows in every sample.
template <class T>
class OperandRows {
 public:
  OperandRows(const Instruction& s, const Frame& frame, std::size_t k, std::int64_t length) noexcept
      : base_(buffer_as<const T>(frame, s.in[k])),
        length_(length),
        per_sample_(s.numbers[0]),
        repeats_(s.batched && s.numbers[2 + k] == 0) {}

  const T* operator[](std::int64_t row) const noexcept {
    return base_ + (repeats_ ? row % per_sample_ : row) * length_;
  }

 private:
  const T* base_;
  std::int64_t length_;
  std::int64_t per_sample_;
  bool repeats_;
};

/// The rows of a group. Where it has fewer rows than a register has lanes, the others are its last
/// one again: what is computed of them is not used.
template <class T>
class GroupRows {
 public:
  BUROPT_INLINE GroupRows(const OperandRows<T>& rows, std::int64_t first, int count) noexcept {
    for (int r = 0; r < Pack<T>::size; ++r) rows_[r] = rows[first + std::min(r, count - 1)];
  }
  BUROPT_INLINE const T* operator[](int r) const noexcept { return rows_[r]; }

 private:
  const T* rows_[Pack<T>::size];
};

/// Calls f(first row, number of rows) for the groups of a tile's rows.
template <class T, class F>
void for_each_group(const Instruction& s, const Frame& frame, F&& f) noexcept {
  constexpr std::int64_t kRows = Pack<T>::size;
  const std::int64_t rows = s.numbers[0] * s.rows(frame);
  for (std::int64_t row = 0; row < rows; row += kRows) {
    f(row, static_cast<int>(std::min(kRows, rows - row)));
  }
}

// ---- Formulas over the last axis, for expansions.

inline Symbol sum_last(Symbol x) {
  Emitter& e = *x.emitter();
  const std::int64_t axis = e.type(x.node()).shape.rank() - 1;
  return {e, e.emit("sum", {x.node()}, Attributes({axis}, {1}))};
}
/// (...) as (..., 1).
inline Symbol with_last_axis(Symbol x) {
  Emitter& e = *x.emitter();
  const Shape& shape = e.type(x.node()).shape;
  std::vector<std::int64_t> extents(shape.begin(), shape.end());
  extents.push_back(1);
  return {e, e.emit("reshape", {x.node()}, Attributes(extents))};
}
/// (..., 1) as (...).
inline NodeId drop_last_axis(Symbol x) {
  Emitter& e = *x.emitter();
  const Shape shape = without_last_axis(e.type(x.node()).shape);
  return e.emit("reshape", {x.node()}, Attributes({shape.begin(), shape.end()}));
}
inline double last_extent(Symbol x) {
  const Shape& shape = x.emitter()->type(x.node()).shape;
  return static_cast<double>(shape[shape.rank() - 1]);
}

/// A contribution to the cotangent of rows, with 0 in place of NaN in those whose own part of the
/// node's cotangent, a row or a number, is all 0; if the node is guarded.
inline NodeId without_dead_rows(Emitter& e, const NodeView& node, NodeId cotangent,
                                NodeId contribution) {
  if (!node.guarded) return contribution;
  const Symbol size = abs(Symbol(e, cotangent));
  const bool is_number = e.type(cotangent).shape.rank() < e.type(contribution).shape.rank();
  const Symbol total = is_number ? with_last_axis(size) : sum_last(size);
  return without_nan(e, (total == Symbol(0)).node(), contribution);
}

}  // namespace buropt
