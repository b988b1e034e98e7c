// Which rows of a sparse matrix (CSR) a kernel works on.
#pragma once

#include <cstdint>

#include "base/simd.h"

namespace buropt {

/// n rows of a CSR matrix, in place: rows first..first+n-1, or those that `rows` names at positions
/// first..first+n-1. Row i has entries row_starts[i]..row_starts[i + 1].
template <class T>
struct CsrRows {
  const T* values;              // (n_entries,); nullptr: every entry is 1
  const std::int32_t* columns;  // (n_entries,)
  const std::int64_t* row_starts;
  std::int64_t n_entries;    // of the whole matrix
  const std::int64_t* rows;  // nullptr: all rows in order
  std::int64_t first;
  std::int64_t n;
  const std::uint16_t* order = nullptr;  // the order in which to go through rows 0..n-1

  BUROPT_INLINE std::int64_t turn(std::int64_t i) const noexcept {
    return order == nullptr ? i : order[i];
  }
  BUROPT_INLINE std::int64_t row(std::int64_t i) const noexcept {
    return rows == nullptr ? first + i : rows[first + i];
  }
  /// Here and there, and not in an order by length.
  BUROPT_INLINE bool are_picked() const noexcept { return rows != nullptr && order == nullptr; }
};

}  // namespace buropt
