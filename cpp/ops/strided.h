// Strided copy: the kernel behind transpose, slice and broadcast_to, and their reverse rules.
//
// Per sample, an array of the given extents is read (gather) or written (scatter) at
// offset + sum index[axis] * stride[axis]; the other side is contiguous.
#pragma once

#include "ops/op.h"

namespace buropt {

struct StridedView {
  Shape extents;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;

  /// The place of the element with this row-major number in the strided side.
  std::int64_t place(std::int64_t element) const;
};

/// out = view of in. in_size: elements of the viewed array per sample (0 for an unbatched operand
/// of a batched instruction, which then repeats for every sample).
void lower_gather(const StridedView& view, const LowerContext& context, Instruction& instruction);

/// out = 0 with in written into the view.
void lower_scatter(const StridedView& view, const LowerContext& context, Instruction& instruction);

/// For instructions over several views: a view's numbers are appended, with the size per sample of
/// its contiguous side (0 when all samples share it), and the kernel adds to all rows of it.
void append_view(const StridedView& view, const Type& contiguous, const Type& strided,
                 std::vector<std::int64_t>& numbers);
std::int64_t view_length(const std::int64_t* numbers) noexcept;
template <class T>
void add_to_view(const std::int64_t* numbers, const T* from, T* to, std::int64_t rows) noexcept;

/// Element rules of the same two.
void gather_elements(const StridedView& view, ElementEmitter& e);
void scatter_elements(const StridedView& view, ElementEmitter& e);

}  // namespace buropt
