#include <string>
#include <unordered_map>

#include "ops/families.h"

namespace buropt {
namespace {

struct Registry {
  std::vector<Op> ops;
  std::unordered_map<std::string_view, OpId> ids;

  Registry() {
    for (auto family : {
             arithmetic_ops,
             comparison_ops,
             selection_ops,
             exponential_ops,
             hyperbolic_ops,
             trigonometric_ops,
             rounding_ops,
             power_ops,
             error_function_ops,
             gamma_ops,
             bessel_ops,
             entropy_ops,
             box_cox_ops,
             robust_ops,
             shape_ops,
             slice_ops,
             concatenate_ops,
             sum_ops,
             prod_ops,
             scan_ops,
             argsort_ops,
             batch_ops,
             matmul_ops,
             matmul_epilogue_ops,
             sparse_ops,
             take_ops,
             table_rows_ops,
             index_ops,
             extremum_ops,
             norm_ops,
             linalg_ops,
             linalg_cofactor_ops,
             linalg_cholesky_ops,
             linalg_eigh_ops,
             activation_ops,
             softmax_ops,
             cross_entropy_ops,
             normalization_ops,
             layer_norm_affine_ops,
             attention_ops,
             attention_memory_ops,
             patches_ops,
         }) {
      for (const Op& record : family()) {
        const bool is_new = ids.emplace(record.name, static_cast<OpId>(ops.size())).second;
        BUROPT_ASSERT(is_new);
        static_cast<void>(is_new);
        ops.push_back(record);
      }
    }
  }
};

const Registry& registry() {
  static const Registry instance;
  return instance;
}

}  // namespace

std::span<const Op> all_ops() { return registry().ops; }

OpId find_op(std::string_view name) {
  const auto found = registry().ids.find(name);
  if (found == registry().ids.end()) {
    raise(ErrorKind::value, "buropt: there is no primitive named '%s'", std::string(name).c_str());
  }
  return found->second;
}

const Op& op(OpId id) { return registry().ops[static_cast<std::size_t>(id)]; }

}  // namespace buropt
