#include "exec/sliced_copy.h"

#include <limits>

namespace buropt {
namespace {

/// Fewer entries are near anyway, and a slice takes as long as some entries.
constexpr std::int64_t kMinEntries = 1 << 15;
constexpr std::int64_t kMinLength = 2;
/// Of what is stored, so much must be entries of the data, as a share of kFull.
constexpr std::int64_t kFull = 4;
constexpr std::int64_t kMinShare = 3;
/// The largest slice, which one thread sums, is at most one part in this many.
constexpr std::int64_t kMinParts = 8;
/// Copies larger than this come from memory in every call; then they must not be larger than what
/// one pass reads.
constexpr std::int64_t kCachedBytes = 32 << 20;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
CsrView<T> view_of(const CsrData& data, std::int64_t n, std::int64_t width) {
  return {reinterpret_cast<const T*>(data.values), data.columns, data.row_starts, n, width};
}

template <class T>
std::vector<std::int32_t> column_lengths(const CsrView<T>& a) {
  std::vector<std::int32_t> lengths(at(a.width), 0);
  for (std::int64_t e = 0; e < a.n_entries(); ++e) ++lengths[at(a.columns[e])];
  return lengths;
}

template <class T>
bool pays_for(const CsrView<T>& a) {
  using Sliced = SlicedMatrix<T>;
  const std::int64_t entries = a.n_entries();
  if (std::max(a.n, a.width) > std::numeric_limits<std::int32_t>::max()) return false;
  if (entries < std::max(kMinEntries, kMinLength * (a.n + a.width))) return false;
  std::int64_t bytes = 0;
  const auto is_even = [&](std::span<const std::int32_t> lengths, std::int64_t width) {
    const auto cost = Sliced::cost(lengths);
    bytes += cost.entries * Sliced::entry_bytes(a, width);
    return kMinShare * cost.entries <= kFull * entries &&
           kMinParts * cost.largest_slice <= cost.entries;
  };
  if (!is_even(a.lengths(), a.width) || !is_even(column_lengths(a), a.n)) return false;
  const std::int64_t value_bytes = a.values == nullptr ? 0 : sizeof(T);
  return bytes <= std::max<std::int64_t>(kCachedBytes, entries * (4 + value_bytes));
}

/// The transposed matrix, sliced: its rows are the columns of `a`.
template <class T>
SlicedMatrix<T> sliced_columns(const CsrView<T>& a) {
  std::vector<std::int64_t> starts(at(a.width) + 1, 0);
  const std::vector<std::int32_t> lengths = column_lengths(a);
  std::partial_sum(lengths.begin(), lengths.end(), starts.begin() + 1, std::plus<std::int64_t>());
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
void SlicedCopy::rows_times(const CsrData& data, std::int64_t n, std::int64_t width, const T* x,
                            T* z, int threads) {
  std::call_once(has_rows_, [&] {
    bytes_ += rows_.emplace<SlicedMatrix<T>>(view_of<T>(data, n, width)).bytes();
  });
  std::get<SlicedMatrix<T>>(rows_).times(x, z, threads);
}

template <class T>
void SlicedCopy::columns_times(const CsrData& data, std::int64_t n, std::int64_t width, const T* r,
                               T* g, int threads) {
  std::call_once(has_columns_, [&] {
    bytes_ += columns_.emplace<SlicedMatrix<T>>(sliced_columns(view_of<T>(data, n, width))).bytes();
  });
  std::get<SlicedMatrix<T>>(columns_).times(r, g, threads);
}

template void SlicedCopy::rows_times(const CsrData&, std::int64_t, std::int64_t, const float*,
                                     float*, int);
template void SlicedCopy::rows_times(const CsrData&, std::int64_t, std::int64_t, const double*,
                                     double*, int);
template void SlicedCopy::columns_times(const CsrData&, std::int64_t, std::int64_t, const float*,
                                        float*, int);
template void SlicedCopy::columns_times(const CsrData&, std::int64_t, std::int64_t, const double*,
                                        double*, int);

}  // namespace buropt
