#include "exec/sliced_copy.h"

#include <limits>

namespace buropt {
namespace {

/// Fewer entries are near anyway, and a slice takes as long as some entries.
constexpr std::int64_t kMinEntries = 1 << 15;
constexpr std::int64_t kMinLength = 2;
constexpr std::int64_t kMinWidth = 64;
/// Of up to so many columns there are blocks of rows, so many at least and up to kMaxBlocks, if a
/// column of a block has kBlockLength entries or more.
constexpr std::int64_t kNarrow = 1024;
constexpr std::int64_t kBlockRows = 1024;
constexpr std::int64_t kMaxBlocks = 64;
constexpr std::int64_t kBlockLength = 8;
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
const std::vector<SlicedMatrix<T>>& SlicedCopy::columns(const CsrData& data, std::int64_t n,
                                                        std::int64_t width) {
  std::call_once(has_columns_, [&] {
    const CsrView<T> all = view_of<T>(data, n, width);
    const std::int64_t rows = block_rows(data, n, width);
    std::vector<SlicedMatrix<T>> blocks;
    for (std::int64_t first = 0; first < n; first += rows == 0 ? n : rows) {
      const std::int64_t count = rows == 0 ? n : std::min(rows, n - first);
      bytes_ += blocks.emplace_back(all.part(first, count), true).bytes();
    }
    columns_ = std::move(blocks);
  });
  return std::get<std::vector<SlicedMatrix<T>>>(columns_);
}

std::int64_t SlicedCopy::block_rows(const CsrData& data, std::int64_t n, std::int64_t width) {
  const std::int64_t rows = ceil_div(ceil_div(n, kMaxBlocks), kBlockRows) * kBlockRows;
  const bool is_worth = width <= kNarrow && n > rows &&
                        data.row_starts[n] >= kBlockLength * ceil_div(n, rows) * width;
  return is_worth ? rows : 0;
}

template const SlicedMatrix<float>& SlicedCopy::rows(const CsrData&, std::int64_t, std::int64_t);
template const SlicedMatrix<double>& SlicedCopy::rows(const CsrData&, std::int64_t, std::int64_t);
template const std::vector<SlicedMatrix<float>>& SlicedCopy::columns(const CsrData&, std::int64_t,
                                                                     std::int64_t);
template const std::vector<SlicedMatrix<double>>& SlicedCopy::columns(const CsrData&, std::int64_t,
                                                                      std::int64_t);

}  // namespace buropt
