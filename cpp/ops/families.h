// The lists of primitives, one per file of this folder; registry.cpp joins them.
#pragma once

#include <vector>

#include "ops/op.h"

namespace buropt {

std::vector<Op> arithmetic_ops();
std::vector<Op> comparison_ops();
std::vector<Op> selection_ops();
std::vector<Op> exponential_ops();
std::vector<Op> hyperbolic_ops();
std::vector<Op> trigonometric_ops();
std::vector<Op> rounding_ops();
std::vector<Op> power_ops();
std::vector<Op> error_function_ops();
std::vector<Op> gamma_ops();
std::vector<Op> bessel_ops();
std::vector<Op> entropy_ops();
std::vector<Op> box_cox_ops();
std::vector<Op> robust_ops();
std::vector<Op> shape_ops();
std::vector<Op> slice_ops();
std::vector<Op> concatenate_ops();
std::vector<Op> sum_ops();
std::vector<Op> prod_ops();
std::vector<Op> scan_ops();
std::vector<Op> argsort_ops();
std::vector<Op> batch_ops();
std::vector<Op> matmul_ops();
std::vector<Op> matmul_epilogue_ops();
std::vector<Op> sparse_ops();
std::vector<Op> take_ops();
std::vector<Op> table_rows_ops();
std::vector<Op> index_ops();
std::vector<Op> extremum_ops();
std::vector<Op> norm_ops();
std::vector<Op> linalg_ops();
std::vector<Op> linalg_cofactor_ops();
std::vector<Op> linalg_cholesky_ops();
std::vector<Op> linalg_eigh_ops();
std::vector<Op> activation_ops();
std::vector<Op> softmax_ops();
std::vector<Op> cross_entropy_ops();
std::vector<Op> normalization_ops();
std::vector<Op> layer_norm_affine_ops();
std::vector<Op> attention_ops();
std::vector<Op> attention_memory_ops();
std::vector<Op> patches_ops();

}  // namespace buropt
