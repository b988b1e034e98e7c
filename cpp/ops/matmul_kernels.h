// The kernels of matrix products, for any mix of batched and unbatched operands.
#pragma once

#include "ops/op.h"

namespace buropt {

/// op(A) (m, k) times op(B) (k, n).
struct MatmulForm {
  std::int64_t m, k, n;
  bool transpose_a, transpose_b;
  bool sums_stack;    ///< the products of a stack are added up
  bool sums_samples;  ///< and those of all samples, into an accumulator
  /// What one product of all rows ends in, as math/gemm_epilogue.h has it. The operands are those
  /// that are given, after A and B in this order.
  struct Ending {
    bool bias = false;
    bool residual = false;
    bool relu = false;
    bool mask = false;
  };
  Ending ending{};
};

/// Chooses a kernel. Operands of two axes have the fast ones: a batched row times an unbatched
/// matrix is one tall product over all rows of a tile, and the cotangent of that matrix is one
/// product that adds straight to the accumulator.
void lower_matmul(const MatmulForm& form, const LowerContext& context, Instruction& instruction);

}  // namespace buropt
