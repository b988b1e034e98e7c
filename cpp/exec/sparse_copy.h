// Dense data that are mostly zeros, as the rows of a sparse matrix.
//
// A product with a vector costs a sparse row a tenth of what it costs a dense one, and gives the
// same sums if the vector is finite: what is left out is added zeros. A kernel for which it is not
// (0 * inf is NaN) takes the dense rows, which remain.
#pragma once

#include <optional>
#include <vector>

#include "exec/engine.h"

namespace buropt {

struct SparseCopy {
  std::vector<std::byte> values;  ///< empty if all are 1
  std::vector<std::int32_t> columns;
  std::vector<std::int64_t> row_starts;

  CsrData rows() const {
    return {values.empty() ? nullptr : values.data(), columns.data(), row_starts.data()};
  }
  std::int64_t bytes() const {
    return static_cast<std::int64_t>(values.size() + columns.size() * sizeof(columns[0]) +
                                     row_starts.size() * sizeof(row_starts[0]));
  }
};

/// The entries other than 0 of n rows, if they are few enough to be worth it.
std::optional<SparseCopy> sparse_copy(const DenseData& data, std::int64_t n, DType dtype);

}  // namespace buropt
