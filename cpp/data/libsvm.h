// Reader of the LIBSVM / SVMlight text format, over a buffer that is already in memory.
//
//   line    := label [qid:integer] (index:value)* [# comment]
//
// Strict: whatever is not of this form is an error that names the file, the line, the token and
// what to write instead. Nothing is skipped or repaired except blank lines, comments, carriage
// returns, surplus blanks and a leading byte-order mark.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace buropt {

struct LibsvmOptions {
  bool zero_based = false;       ///< feature indices count from 0 instead of 1
  std::int64_t n_features = -1;  ///< number of columns; -1: the largest index seen
  bool query_id = false;         ///< keep the qid:... fields (every line then needs one)
};

/// Compressed sparse rows; row r is the range row_starts[r] .. row_starts[r + 1].
template <class T>
struct LibsvmData {
  std::vector<double> labels;            // (n,)
  std::vector<std::int64_t> row_starts;  // (n + 1,); 64 bits: more than 2^31 non-zeros are legal
  std::vector<std::int32_t> columns;     // (nnz,), zero-based, increasing within a row
  std::vector<T> values;                 // (nnz,)
  std::vector<std::int64_t> query_ids;   // (n,), or empty without query_id
  std::int64_t n_features = 0;
};

/// Parses `text`; `name` stands for it in error messages. T is float or double.
template <class T>
LibsvmData<T> parse_libsvm(std::string_view text, const std::string& name,
                           const LibsvmOptions& options);

}  // namespace buropt
