#include "exec/sparse_copy.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace buropt {
namespace {

/// At most one entry in this many is other than 0: an entry of a sparse row takes as long as a few
/// of a dense one.
constexpr std::int64_t kMinShare = 8;
/// A shorter row is read in no time anyway.
constexpr std::int64_t kMinWidth = 64;
/// So many rows, evenly spread, tell whether it is worth a look at all of them.
constexpr std::int64_t kSampleRows = 256;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
std::int64_t count_entries(const T* row, std::int64_t width) {
  return width - std::count(row, row + width, T(0));
}

template <class T>
std::optional<SparseCopy> copy_of(const T* data, std::int64_t n, std::int64_t width) {
  const std::int64_t step = std::max<std::int64_t>(1, n / kSampleRows);
  std::int64_t seen = 0;
  std::int64_t entries = 0;
  for (std::int64_t i = 0; i < n; i += step, seen += width) {
    entries += count_entries(data + i * width, width);
  }
  if (entries * kMinShare > seen) return std::nullopt;
  SparseCopy copy;
  copy.row_starts.push_back(0);
  for (std::int64_t i = 0; i < n; ++i) {
    copy.row_starts.push_back(copy.row_starts.back() + count_entries(data + i * width, width));
  }
  entries = copy.row_starts.back();
  if (entries * kMinShare > n * width) return std::nullopt;
  copy.columns.resize(at(entries));
  copy.values.resize(at(entries) * sizeof(T));
  T* value = reinterpret_cast<T*>(copy.values.data());
  std::int32_t* column = copy.columns.data();
  for (const T* row = data; row != data + n * width; row += width) {
    for (std::int64_t j = 0; j < width; ++j) {
      if (row[j] == T(0)) continue;
      *value++ = row[j];
      *column++ = static_cast<std::int32_t>(j);
    }
  }
  const T* values = reinterpret_cast<const T*>(copy.values.data());
  if (std::all_of(values, values + entries, [](T v) { return v == T(1); })) copy.values.clear();
  copy.values.shrink_to_fit();
  return copy;
}

}  // namespace

std::optional<SparseCopy> sparse_copy(const DenseData& data, std::int64_t n, DType dtype) {
  const std::int64_t width = data.row_size;
  if (n == 0 || width < kMinWidth || width > std::numeric_limits<std::int32_t>::max()) {
    return std::nullopt;
  }
  return dispatch(dtype, [&](auto zero) {
    return copy_of(reinterpret_cast<const decltype(zero)*>(data.values), n, width);
  });
}

}  // namespace buropt
