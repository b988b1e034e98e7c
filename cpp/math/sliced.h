// A sparse matrix for products with a vector, as many rows at a time as a register has lanes.
//
// Rows are sorted by length within parts of neighbours, one for a thread to take. As many as a
// register has lanes are a slice, whose entries lie interleaved: the first of each row, then the
// second of each. So a register sums a row in every lane, and nothing branches where a row ends.
// What is read of an entry is kept small: a column takes two bytes where that is enough, values
// none where all are 1, and of float64 two where all are counts up to 65535. The format is
// SELL-C-sigma, with C the lanes and sigma a part (Kreutzer et al., SIAM J. Sci. Comput. 36(5),
// 2014).
//
// A long row is cut into pieces, which stand for rows: it would leave the lanes beside it empty,
// and one thread would sum it alone. So at most as many zeros as a slice of whole pieces has
// entries fill up a part.
//
// Order of summation: one chain over the entries of a piece, one over the pieces of a row. Neither
// lanes nor threads, nor how entries are stored, change a bit.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "base/pool.h"
#include "math/gather.h"
#include "math/lanes.h"

namespace buropt {

/// Rows of a CSR matrix in someone else's memory.
template <class T>
struct CsrView {
  const T* values;  ///< nullptr: all are 1
  const std::int32_t* columns;
  const std::int64_t* row_starts;
  std::int64_t n;
  std::int64_t width;

  std::int64_t n_entries() const noexcept { return row_starts[n] - row_starts[0]; }
  /// Rows first..first+count-1.
  CsrView part(std::int64_t first, std::int64_t count) const noexcept {
    return {values, columns, row_starts + first, count, width};
  }
};

/// Rows by their lengths: the longest first, equal ones in order.
inline std::vector<std::int32_t> by_length(std::span<const std::int32_t> lengths) {
  const std::int32_t longest = lengths.empty() ? 0 : *std::ranges::max_element(lengths);
  std::vector<std::int32_t> place(static_cast<std::size_t>(longest) + 2, 0);
  const auto shorter_by = [&](std::size_t row) {
    return static_cast<std::size_t>(longest - lengths[row]);
  };
  for (std::size_t row = 0; row < lengths.size(); ++row) ++place[shorter_by(row) + 1];
  std::partial_sum(place.begin(), place.end(), place.begin());
  std::vector<std::int32_t> order(lengths.size());
  for (std::size_t row = 0; row < lengths.size(); ++row) {
    order[static_cast<std::size_t>(place[shorter_by(row)]++)] = static_cast<std::int32_t>(row);
  }
  return order;
}

template <class T>
class SlicedMatrix {
 public:
  static constexpr int kLanes = Pack<T>::size;
  static constexpr std::int32_t kPiece = 256;  ///< entries

  /// transposed: the columns of `a` are the rows here.
  SlicedMatrix(const CsrView<T>& a, bool transposed)
      : n_(transposed ? a.width : a.n), format_(format_of(a)) {
    std::vector<std::int32_t> counts(at(n_), 0);
    for_entries(a, transposed,
                [&](std::int64_t row, std::int64_t, std::int64_t) { ++counts[at(row)]; });
    const Places places = arrange(counts);
    const auto fill = [&](auto& to, auto number) {
      to.resize(at(starts_.back() * kLanes));  // zeros fill the slices up
      std::vector<std::int32_t> filled(at(n_), 0);
      for_entries(a, transposed, [&](std::int64_t row, std::int64_t column, std::int64_t e) {
        using To = std::remove_cvref_t<decltype(to[0])>;
        to[at(places(row, filled[at(row)]++))] = static_cast<To>(number(column, e));
      });
    };
    const auto column_of = [](std::int64_t column, std::int64_t) { return column; };
    const auto value_of = [&](std::int64_t, std::int64_t e) { return a.values[e]; };
    if (has_short_columns(transposed ? a.n : a.width)) {
      fill(short_columns_, column_of);
    } else {
      fill(columns_, column_of);
    }
    if (format_ == Format::counts) fill(counts_, value_of);
    if (format_ == Format::values) fill(values_, value_of);
  }

  /// Bytes of an entry of `a` and of the same transposed, together.
  static std::int64_t entry_bytes(const CsrView<T>& a) {
    constexpr std::size_t value[] = {0, sizeof(counts_[0]), sizeof(T)};
    const auto column = [](std::int64_t width) {
      return has_short_columns(width) ? sizeof(short_columns_[0]) : sizeof(columns_[0]);
    };
    const std::size_t values = 2 * value[static_cast<int>(format_of(a))];
    return static_cast<std::int64_t>(column(a.width) + column(a.n) + values);
  }

  std::int64_t bytes() const noexcept {
    const auto of = [](const auto& v) { return v.size() * sizeof(v[0]); };
    return static_cast<std::int64_t>(of(targets_) + of(cut_rows_) + of(lengths_) + of(starts_) +
                                     of(parts_) + of(short_columns_) + of(columns_) + of(counts_) +
                                     of(values_));
  }

  /// Elements of scratch that `times` needs: the sums of the pieces of long rows.
  std::int64_t n_cut_pieces() const noexcept { return n_cut_pieces_; }

  /// z (n,) = A x (width,).
  void times(const T* x, T* z, T* scratch, int threads) const {
    sum_pieces(x, z, scratch, threads);
    for (const CutRow& row : cut_rows_) {
      T sum = scratch[row.begin];
      for (std::int64_t k = row.begin + 1; k < row.end; ++k) sum += scratch[k];
      z[row.row] = sum;
    }
  }

 private:
  using V = Lanes<T, kLanes>;
  using Int = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
  using Each = std::make_index_sequence<kLanes>;
  enum class Format : std::uint8_t { ones, counts, values };

  /// Its pieces, among those of all such rows.
  struct CutRow {
    std::int64_t row;
    std::int64_t begin;
    std::int64_t end;
  };

  static constexpr std::uint16_t kMaxShort = std::numeric_limits<std::uint16_t>::max();
  /// To spread counts over lanes of float32 would cost more than it saves.
  static constexpr bool kHasCounts = sizeof(T) == 8;
  static constexpr std::int32_t kNoTarget = -1;
  /// Entries that a part has at least, and about how many parts there are at most.
  static constexpr std::int64_t kPartSize = 1 << 13;
  static constexpr std::int64_t kMaxParts = 32;

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

  void sum_pieces(const T* x, T* z, T* scratch, int threads) const {
    const auto run = [&](const auto& columns, auto format) {
      const auto part = [&](std::int64_t k, int) {
        for (std::int64_t s = parts_[at(k)]; s < parts_[at(k) + 1]; ++s) {
          sum_slice<format.value>(s, columns.data(), x, z, scratch);
        }
      };
      Pool::run(static_cast<std::int64_t>(parts_.size()) - 1, threads, part);
    };
    const auto with_columns = [&](auto format) {
      short_columns_.empty() ? run(columns_, format) : run(short_columns_, format);
    };
    switch (format_) {
      case Format::ones:
        return with_columns(std::integral_constant<Format, Format::ones>());
      case Format::counts:
        if constexpr (kHasCounts) with_columns(std::integral_constant<Format, Format::counts>());
        return;
      case Format::values:
        with_columns(std::integral_constant<Format, Format::values>());
    }
  }

  static bool has_short_columns(std::int64_t width) { return width <= kMaxShort + 1; }

  static Format format_of(const CsrView<T>& a) {
    if (a.values == nullptr) return Format::ones;
    const auto is_count = [](T v) {
      return v >= 0 && v <= kMaxShort && v == static_cast<T>(static_cast<std::int32_t>(v));
    };
    const bool all_counts = kHasCounts && std::all_of(a.values + a.row_starts[0],
                                                      a.values + a.row_starts[a.n], is_count);
    return all_counts ? Format::counts : Format::values;
  }

  /// Calls f(row, column, number) of every entry, those of a row in the order of the columns.
  template <class F>
  static void for_entries(const CsrView<T>& a, bool transposed, const F& f) {
    for (std::int64_t i = 0; i < a.n; ++i) {
      for (std::int64_t e = a.row_starts[i]; e < a.row_starts[i + 1]; ++e) {
        transposed ? f(std::int64_t{a.columns[e]}, i, e) : f(i, std::int64_t{a.columns[e]}, e);
      }
    }
  }

  /// Where entry k of a row is stored.
  struct Places {
    std::vector<std::int32_t> first_piece;  ///< by row
    std::vector<std::int64_t> begin;        ///< by piece

    std::int64_t operator()(std::int64_t row, std::int64_t k) const {
      return begin[at(first_piece[at(row)] + k / kPiece)] + k % kPiece * kLanes;
    }
  };

  /// Cuts rows of such lengths into pieces, and the pieces into slices.
  Places arrange(const std::vector<std::int32_t>& row_lengths) {
    Places places;
    std::vector<std::int32_t> targets;  // by piece
    std::vector<std::int32_t> lengths;
    for (std::int64_t row = 0; row < n_; ++row) {
      places.first_piece.push_back(static_cast<std::int32_t>(targets.size()));
      std::int32_t rest = row_lengths[at(row)];
      const bool is_cut = rest > kPiece;
      if (is_cut) cut_rows_.push_back({row, n_cut_pieces_, 0});
      do {
        targets.push_back(static_cast<std::int32_t>(is_cut ? n_ + n_cut_pieces_++ : row));
        lengths.push_back(std::min(kPiece, rest));
        rest -= kPiece;
      } while (rest > 0);
      if (is_cut) cut_rows_.back().end = n_cut_pieces_;
    }
    places.begin.resize(targets.size());
    starts_.push_back(0);
    parts_.push_back(0);
    const std::int64_t entries = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    const std::int64_t most = std::max(kPartSize, ceil_div(entries, kMaxParts));
    for (std::size_t first = 0, end = 0; first < targets.size(); first = end) {
      for (std::int64_t size = 0; end < targets.size() && size < most; ++end) size += lengths[end];
      append(first, std::span(lengths).subspan(first, end - first), targets, places);
    }
    return places;
  }

  /// Slices of the pieces from `first` on that have these lengths: a part.
  void append(std::size_t first, std::span<const std::int32_t> lengths,
              const std::vector<std::int32_t>& targets, Places& places) {
    const std::vector<std::int32_t> order = by_length(lengths);
    for (std::size_t k = 0; k < order.size(); k += kLanes) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const bool is_piece = k + lane < order.size();
        const std::size_t piece = is_piece ? at(order[k + lane]) : 0;
        lengths_.push_back(is_piece ? lengths[piece] : 0);
        targets_.push_back(is_piece ? targets[first + piece] : kNoTarget);
        if (!is_piece) continue;
        places.begin[first + piece] = starts_.back() * kLanes + static_cast<std::int64_t>(lane);
      }
      starts_.push_back(starts_.back() + lengths[at(order[k])]);
    }
    parts_.push_back(std::ssize(starts_) - 1);
  }

  /// Counts as numbers. Conversions of the compilers' would take twice the time.
  template <std::size_t... i>
  BUROPT_INLINE static V numbers(const std::uint16_t* counts, std::index_sequence<i...>) noexcept {
    static_assert(std::endian::native == std::endian::little);
    using Words = Lanes<std::uint64_t, kLanes>;
    std::uint64_t word[ceil_div(kLanes, 4)] = {};  // of four counts
    std::memcpy(word, counts, kLanes * sizeof(counts[0]));
    const Words spread = (Words{word[i / 4]...} >> Words{16 * (i % 4)...}) & kMaxShort;
    constexpr T unit = FloatFormat<T>::kUnit;  // its low bits hold a count
    return __builtin_bit_cast(V, spread | __builtin_bit_cast(std::uint64_t, unit)) - unit;
  }

  /// Adds an entry of every row of a slice.
  template <Format format, class Column>
  BUROPT_INLINE V add_entries(std::int64_t group, const Column* columns, const T* x,
                              V sum) const noexcept {
    const std::int64_t first = group * kLanes;
    const V factor = gather_lanes<kLanes>(x, columns + first);
    if constexpr (format == Format::ones) {
      return sum + factor;
    } else if constexpr (format == Format::counts) {
      return multiply_add(factor, numbers(counts_.data() + first, Each()), sum);
    } else {
      return multiply_add(factor, load_lanes<T, kLanes>(values_.data() + first), sum);
    }
  }

  template <Format format, class Column>
  BUROPT_INLINE void sum_slice(std::int64_t s, const Column* columns, const T* x, T* z,
                               T* scratch) const noexcept {
    const std::int32_t* lengths = lengths_.data() + s * kLanes;
    const std::int64_t begin = starts_[at(s)];
    const std::int64_t shortest = lengths[kLanes - 1];
    const std::int64_t longest = lengths[0];
    V sum = {};
    std::int64_t e = 0;
    for (; e < shortest; ++e) sum = add_entries<format>(begin + e, columns, x, sum);
    if (e < longest) {
      Lanes<Int, kLanes> length = {};
      for (int k = 0; k < kLanes; ++k) length[k] = lengths[k];
      // Zeros fill the slice up, but zero times infinity must not be added.
      for (; e < longest; ++e) {
        const V next = add_entries<format>(begin + e, columns, x, sum);
        sum = length > static_cast<Int>(e) ? next : sum;
      }
    }
    const std::int32_t* targets = targets_.data() + s * kLanes;
    for (int k = 0; k < kLanes && targets[k] != kNoTarget; ++k) {
      const std::int64_t target = targets[k];
      (target < n_ ? z[target] : scratch[target - n_]) = sum[k];
    }
  }

  std::int64_t n_;
  Format format_;
  std::int64_t n_cut_pieces_ = 0;
  std::vector<CutRow> cut_rows_;
  std::vector<std::int32_t> targets_;  ///< of slices: rows, or n_ and more, pieces of long rows
  std::vector<std::int32_t> lengths_;  ///< the same way; zeros where a slice is not full
  std::vector<std::int64_t> starts_;   ///< by slice: registers of entries before it
  std::vector<std::int64_t> parts_;    ///< by part: its first slice
  std::vector<std::uint16_t> short_columns_;  ///< these or the next
  std::vector<std::int32_t> columns_;
  std::vector<std::uint16_t> counts_;  ///< these, the next, or neither
  std::vector<T> values_;
};

}  // namespace buropt
