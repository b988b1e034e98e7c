#include "exec/sliced_copy.h"

#include <limits>

namespace buropt {
namespace {

/// Fewer entries are near anyway, and a slice takes as long as some entries.
constexpr std::int64_t kMinEntries = 1 << 15;
constexpr std::int64_t kMinLength = 2;
/// Of fewer columns, every thread's x and gradient stay in its first-level cache in one pass, and
/// threads share nothing, so that it gains more by them than two products, between which they
/// exchange a number of every sample (a9a: two threads are 1.9 times as fast as one, against 1.7).
constexpr std::int64_t kMinWidth = 1024;
/// Copies larger than this come from memory in every call; then they must not be larger than what
/// one pass reads.
constexpr std::int64_t kCachedBytes = 32 << 20;

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
  const std::int64_t value_bytes = a.values == nullptr ? 0 : sizeof(T);
  return entries * Sliced::entry_bytes(a) <= std::max(kCachedBytes, entries * (4 + value_bytes));
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
    bytes_ += rows_.emplace<SlicedMatrix<T>>(view_of<T>(data, n, width), false).bytes();
  });
  return std::get<SlicedMatrix<T>>(rows_);
}

template <class T>
const SlicedMatrix<T>& SlicedCopy::columns(const CsrData& data, std::int64_t n,
                                           std::int64_t width) {
  std::call_once(has_columns_, [&] {
    bytes_ += columns_.emplace<SlicedMatrix<T>>(view_of<T>(data, n, width), true).bytes();
  });
  return std::get<SlicedMatrix<T>>(columns_);
}

template const SlicedMatrix<float>& SlicedCopy::rows(const CsrData&, std::int64_t, std::int64_t);
template const SlicedMatrix<double>& SlicedCopy::rows(const CsrData&, std::int64_t, std::int64_t);
template const SlicedMatrix<float>& SlicedCopy::columns(const CsrData&, std::int64_t, std::int64_t);
template const SlicedMatrix<double>& SlicedCopy::columns(const CsrData&, std::int64_t,
                                                         std::int64_t);

}  // namespace buropt
