#include "exec/sliced_copy.h"

#include <limits>

namespace buropt {
namespace {

/// Fewer entries are near anyway, and a slice takes as long as some entries.
constexpr std::int64_t kMinEntries = 1 << 15;
constexpr std::int64_t kMinLength = 2;
/// Of fewer columns, every thread's x and gradient stay in its first-level cache in one pass, and
/// threads share nothing, so that it gains more by them than two products, between which they
/// exchange a number of every sample (a9a: two threads are 1.9 times as fast as one, against 1.6).
constexpr std::int64_t kMinWidth = 1024;
/// Copies larger than this come from memory in every call; then they must not be larger than what
/// one pass reads.
constexpr std::int64_t kCachedBytes = 32 << 20;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
CsrView<T> view_of(const CsrData& data, std::int64_t n, std::int64_t width) {
  return {reinterpret_cast<const T*>(data.values), data.columns, data.row_starts, n, width};
}

template <class T>
bool pays_for(const CsrView<T>& a) {
  using Sliced = SlicedMatrix<T>;
  const std::int64_t entries = a.n_entries();
  // Rows or columns, and pieces of long ones, are numbered by 32 bits.
  if (std::max(a.n, a.width) + entries / Sliced::kPiece >
      std::numeric_limits<std::int32_t>::max() / 2) {
    return false;
  }
  if (a.width < kMinWidth) return false;
  if (entries < std::max(kMinEntries, kMinLength * (a.n + a.width))) return false;
  const std::int64_t bytes =
      entries * (Sliced::entry_bytes(a, a.width) + Sliced::entry_bytes(a, a.n));
  const std::int64_t value_bytes = a.values == nullptr ? 0 : sizeof(T);
  return bytes <= std::max<std::int64_t>(kCachedBytes, entries * (4 + value_bytes));
}

/// The transposed matrix, sliced: its rows are the columns of `a`.
template <class T>
SlicedMatrix<T> sliced_columns(const CsrView<T>& a) {
  std::vector<std::int64_t> starts(at(a.width) + 1, 0);
  for (std::int64_t e = 0; e < a.n_entries(); ++e) ++starts[at(a.columns[e]) + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  std::vector<std::int64_t> next(starts.begin(), starts.end() - 1);
  std::vector<std::int32_t> rows(at(a.n_entries()));
  std::vector<T> values(a.values == nullptr ? 0 : rows.size());
  for (std::int64_t i = 0; i < a.n; ++i) {
    for (std::int64_t e = a.row_starts[i]; e < a.row_starts[i + 1]; ++e) {
      const std::int64_t place = next[at(a.columns[e])]++;
      rows[at(place)] = static_cast<std::int32_t>(i);
      if (a.values != nullptr) values[at(place)] = a.values[e];
    }
  }
  return SlicedMatrix<T>(
      {a.values == nullptr ? nullptr : values.data(), rows.data(), starts.data(), a.width, a.n});
}

}  // namespace

bool SlicedCopy::pays(const CsrData& data, std::int64_t n, std::int64_t width, DType dtype) {
  std::call_once(decided_, [&] {
    pays_ = dispatch(dtype,
                     [&](auto zero) { return pays_for(view_of<decltype(zero)>(data, n, width)); });
  });
  return pays_;
}

template <class T>
const SlicedMatrix<T>& SlicedCopy::rows(const CsrData& data, std::int64_t n, std::int64_t width) {
  std::call_once(has_rows_, [&] {
    bytes_ += rows_.emplace<SlicedMatrix<T>>(view_of<T>(data, n, width)).bytes();
  });
  return std::get<SlicedMatrix<T>>(rows_);
}

template <class T>
const SlicedMatrix<T>& SlicedCopy::columns(const CsrData& data, std::int64_t n,
                                           std::int64_t width) {
  std::call_once(has_columns_, [&] {
    bytes_ += columns_.emplace<SlicedMatrix<T>>(sliced_columns(view_of<T>(data, n, width))).bytes();
  });
  return std::get<SlicedMatrix<T>>(columns_);
}

template const SlicedMatrix<float>& SlicedCopy::rows(const CsrData&, std::int64_t, std::int64_t);
template const SlicedMatrix<double>& SlicedCopy::rows(const CsrData&, std::int64_t, std::int64_t);
template const SlicedMatrix<float>& SlicedCopy::columns(const CsrData&, std::int64_t, std::int64_t);
template const SlicedMatrix<double>& SlicedCopy::columns(const CsrData&, std::int64_t,
                                                         std::int64_t);

}  // namespace buropt
