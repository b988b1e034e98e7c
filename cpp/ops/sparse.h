// What an engine may know of the instructions that multiply sparse rows with a vector.
#pragma once

#include "ops/op.h"

namespace buropt {

/// dot: one number for each row (in: rows, vector). sum: over the rows, one for each column (in:
/// rows, one number for each).
enum class SparseProduct : std::uint8_t { none, dot, sum };

SparseProduct sparse_product(const Instruction& s);

}  // namespace buropt
