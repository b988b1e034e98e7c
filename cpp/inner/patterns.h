// Products with a sparse matrix whose rows repeat each other piece by piece.
//
// Features that stand for categories are ones in a few groups of columns, and a group has far fewer
// different rows than there are samples. So the columns are cut into ranges in which the rows have
// few different pieces. A product with x is then one look-up for each row and range, in a table of
// the products of the pieces, whatever the number of entries: 3 look-ups on a9a, where a row has 14
// entries. The idea is that of compressed linear algebra (Elgohary et al., PVLDB 9(12), 2016).
#pragma once

#include <algorithm>
#include <bit>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/pool.h"
#include "exec/engine.h"
#include "math/lanes.h"

namespace buropt {

template <class T>
class RowPatterns {
 public:
  /// Nothing if there would not be far fewer look-ups than entries.
  static std::optional<RowPatterns> find(const CsrData& a, std::int64_t n, std::int64_t d) {
    const std::int64_t most = a.row_starts[n] / 3;
    RowPatterns result(n);
    Search search(a, n, d);
    while (search.next_range()) {
      result.add(a, search);
      if (static_cast<std::int64_t>(result.pieces_.size() + result.columns_.size()) > most) break;
    }
    if (search.end() < d) return std::nullopt;
    return result;
  }

  /// Elements of scratch that `times` needs: the products of all pieces.
  std::size_t table_size() const noexcept { return starts_.size() - 1; }

  /// z (n,) = A x (d,). Order of summation: within a piece, then over the pieces of a row.
  void times(const T* x, T* z, T* table, int threads) const {
    for (std::size_t p = 0; p < table_size(); ++p) {
      T sum = 0;
      for (std::size_t e = starts_[p]; e < starts_[p + 1]; ++e) {
        sum = multiply_add(values_.empty() ? T(1) : values_[e], x[columns_[e]], sum);
      }
      table[p] = sum;
    }
    Pool::run(ceil_div(n_, kBlock), threads, [&](std::int64_t block, int) {
      const std::int64_t end = std::min((block + 1) * kBlock, n_);
      std::int64_t row = block * kBlock;
      for (; row + kRows <= end; row += kRows) look_up<kRows>(row, table, z + row);
      for (; row < end; ++row) look_up<1>(row, table, z + row);
    });
  }

 private:
  static constexpr std::uint32_t kMostPieces = 2048;  // of a range: their products stay near
  static constexpr std::int64_t kBlock = 2048;        // rows of a task
  static constexpr int kRows = 8;                     // that are summed side by side

  /// Goes through the columns from range to range, as wide as they can be.
  class Search {
   public:
    Search(const CsrData& a, std::int64_t n, std::int64_t d)
        : values_(reinterpret_cast<const T*>(a.values)), columns_(static_cast<std::size_t>(d)) {
      piece_.resize(static_cast<std::size_t>(n));
      for (std::int64_t row = 0; row < n; ++row) {
        for (std::int64_t e = a.row_starts[row]; e < a.row_starts[row + 1]; ++e) {
          columns_[static_cast<std::size_t>(a.columns[e])].emplace_back(row, e);
        }
      }
    }

    /// False at the last column, or if one column alone has too many different values.
    bool next_range() {
      begin_ = end_;
      std::fill(piece_.begin(), piece_.end(), 0);
      n_pieces_ = 1;
      while (end_ < static_cast<std::int64_t>(columns_.size()) && refine()) ++end_;
      return end_ > begin_;
    }

    std::int64_t begin() const noexcept { return begin_; }
    std::int64_t end() const noexcept { return end_; }
    std::uint32_t n_pieces() const noexcept { return n_pieces_; }
    /// The number of each row's piece in the range.
    const std::vector<std::uint32_t>& piece() const noexcept { return piece_; }

   private:
    /// Tells pieces apart by the next column as well; if that makes too many, it changes nothing.
    bool refine() {
      finer_.clear();
      changed_.clear();
      std::uint32_t n_pieces = n_pieces_;
      const auto& column = columns_[static_cast<std::size_t>(end_)];
      for (const auto& [row, e] : column) {
        const double value = values_ == nullptr ? 1 : static_cast<double>(values_[e]);
        const std::pair key(piece_[static_cast<std::size_t>(row)],
                            std::bit_cast<std::uint64_t>(value));
        const auto [found, is_new] = finer_.try_emplace(key, n_pieces);
        if (is_new && ++n_pieces > kMostPieces) return false;
        changed_.push_back(found->second);
      }
      for (std::size_t k = 0; k < column.size(); ++k) {
        piece_[static_cast<std::size_t>(column[k].first)] = changed_[k];
      }
      n_pieces_ = n_pieces;
      return true;
    }

    const T* values_;
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> columns_;  ///< (row, entry)
    std::int64_t begin_ = 0;
    std::int64_t end_ = 0;
    std::vector<std::uint32_t> piece_;
    std::uint32_t n_pieces_ = 0;
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> finer_;
    std::vector<std::uint32_t> changed_;
  };

  explicit RowPatterns(std::int64_t n) : n_(n) {}

  template <int rows>
  BUROPT_INLINE void look_up(std::int64_t row, const T* table, T* z) const noexcept {
    T sums[rows] = {};
    const std::uint16_t* piece = pieces_.data() + row;
    for (const std::int64_t first : first_) {
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) sums[i] += table[first + piece[i]];
      piece += n_;
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) z[i] = sums[i];
  }

  void add(const CsrData& a, const Search& range) {
    first_.push_back(static_cast<std::int64_t>(table_size()));
    std::vector<std::int64_t> example(range.n_pieces(), -1);
    for (std::int64_t row = 0; row < n_; ++row) {
      const std::uint32_t piece = range.piece()[static_cast<std::size_t>(row)];
      pieces_.push_back(static_cast<std::uint16_t>(piece));
      example[piece] = row;
    }
    for (const std::int64_t row : example) {
      if (row >= 0) {  // otherwise all rows that had the piece were told apart further
        for (std::int64_t e = a.row_starts[row]; e < a.row_starts[row + 1]; ++e) {
          if (a.columns[e] < range.begin() || a.columns[e] >= range.end()) continue;
          columns_.push_back(a.columns[e]);
          if (a.values != nullptr) values_.push_back(reinterpret_cast<const T*>(a.values)[e]);
        }
      }
      starts_.push_back(columns_.size());
    }
  }

  std::int64_t n_;
  std::vector<std::uint16_t> pieces_;   ///< by range, then by row
  std::vector<std::int64_t> first_;     ///< by range: its first piece in the table
  std::vector<std::size_t> starts_{0};  ///< by piece: its first entry
  std::vector<std::int32_t> columns_;
  std::vector<T> values_;  ///< empty: all are 1
};

}  // namespace buropt
