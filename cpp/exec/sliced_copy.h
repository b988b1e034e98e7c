// Sparse data kept twice more, sliced by rows and by columns, for products with all of them.
//
// The gradient of a full batch is A' phi'(A x). In one pass over the rows every entry reads x and
// adds to the gradient at a place of its own. As two products, one by rows and one by columns, each
// reads one vector at places of its own and adds to registers, which takes 0.5 to 0.8 of the time;
// no sums of threads have to be brought together, and no gradient is kept for each thread. Of a
// narrow matrix, whose gradient is short, the columns are kept for blocks of rows: one thread then
// makes the factors of a block and sums with them, and threads exchange nothing but these sums.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <variant>
#include <vector>

#include "exec/engine.h"
#include "math/sliced.h"

namespace buropt {

/// The copies of one CSR array, for all engines over it. Thread-safe.
class SlicedCopy {
 public:
  /// Whether products with all rows of the array, n rows of this width, are faster by the copies.
  bool pays(const CsrData& data, std::int64_t n, std::int64_t width, DType dtype);

  /// The matrix by rows, and transposed, by columns. Each is made when it is first asked for.
  template <class T>
  const SlicedMatrix<T>& rows(const CsrData& data, std::int64_t n, std::int64_t width);
  /// There is one of these for every block of block_rows rows, if that is not 0, else one for all.
  template <class T>
  const std::vector<SlicedMatrix<T>>& columns(const CsrData& data, std::int64_t n,
                                              std::int64_t width);
  static std::int64_t block_rows(const CsrData& data, std::int64_t n, std::int64_t width);

  std::int64_t bytes() const { return bytes_; }

 private:
  using Matrix = std::variant<std::monostate, SlicedMatrix<float>, SlicedMatrix<double>>;
  using Matrices = std::variant<std::monostate, std::vector<SlicedMatrix<float>>,
                                std::vector<SlicedMatrix<double>>>;

  std::once_flag decided_;
  std::once_flag has_rows_;
  std::once_flag has_columns_;
  bool pays_ = false;
  Matrix rows_;
  Matrices columns_;
  std::atomic<std::int64_t> bytes_ = 0;
};

}  // namespace buropt
