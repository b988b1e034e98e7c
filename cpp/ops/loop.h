// Loop: how an elementwise instruction walks its operands.
//
// The batch axis and the axes of a sample are merged wherever every operand allows it. What is left
// must be at most two nested loops, the inner one with stride 1 or 0 (the same value again) for
// each operand; the builder inserts explicit broadcasts where that does not hold.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "ops/op.h"

namespace buropt {

struct Loop {
  /// Extents; a batched one is multiplied by the number of rows at run time.
  std::int64_t outer = 1;
  std::int64_t inner = 1;
  bool outer_batched = false;
  bool inner_batched = false;
  std::vector<std::int64_t> outer_strides;
  std::vector<std::int64_t> inner_strides;

  /// Flattened for Instruction::numbers, in the order that ElementwiseKernel reads.
  std::vector<std::int64_t> numbers() const;
};

/// NumPy's broadcasting rule; raises naming the primitive and the shapes.
Shape broadcast_shapes(std::string_view op, std::span<const Type> in);

/// The loop for operands of these types, or nothing when two levels do not suffice.
std::optional<Loop> plan_loop(std::span<const Type> in, const Type& out);

}  // namespace buropt
