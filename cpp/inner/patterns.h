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
    while (search.next_range(result)) {
      if (static_cast<std::int64_t>(result.pieces_.size() + result.table_size()) > most) {
        return std::nullopt;
      }
    }
    return search.is_done() ? std::optional(std::move(result)) : std::nullopt;
  }

  /// Elements of scratch that `times` needs: the products of all pieces.
  std::size_t table_size() const noexcept { return steps_.size(); }

  /// z (n,) = A x (d,). Order of summation: within a piece, then over the pieces of a row.
  void times(const T* x, T* z, T* table, int threads) const {
    for (std::size_t p = 0; p < table_size(); ++p) {
      const Step& step = steps_[p];
      table[p] =
          step.shorter < 0 ? T(0) : multiply_add(step.value, x[step.column], table[step.shorter]);
    }
    Pool::run(ceil_div(n_, kBlock), threads, [&](std::int64_t block, int) {
      const std::int64_t end = std::min((block + 1) * kBlock, n_);
      std::int64_t row = block * kBlock;
      for (; row + kRows <= end; row += kRows) look_up<kRows>(row, table, z + row);
      for (; row < end; ++row) look_up<1>(row, table, z + row);
    });
  }

 private:
  static constexpr std::size_t kMostPieces = 2048;  // of a range: their products stay near
  static constexpr std::int64_t kBlock = 2048;      // rows of a task
  static constexpr int kRows = 8;                   // that are summed side by side

  /// A piece is a shorter piece and one more entry, or empty.
  struct Step {
    std::int64_t shorter = -1;
    std::int64_t column = 0;
    T value = 0;
  };

  /// Goes through the columns from range to range, as wide as they can be.
  class Search {
   public:
    Search(const CsrData& a, std::int64_t n, std::int64_t d)
        : values_(reinterpret_cast<const T*>(a.values)),
          columns_(static_cast<std::size_t>(d)),
          piece_(static_cast<std::size_t>(n)) {
      for (std::int64_t row = 0; row < n; ++row) {
        for (std::int64_t e = a.row_starts[row]; e < a.row_starts[row + 1]; ++e) {
          columns_[static_cast<std::size_t>(a.columns[e])].emplace_back(row, e);
        }
      }
    }

    bool is_done() const noexcept { return next_ == columns_.size(); }

    /// False at the last column, or if one column alone has too many different values.
    bool next_range(RowPatterns& found) {
      const std::size_t begin = next_;
      std::fill(piece_.begin(), piece_.end(), 0);
      steps_.assign(1, Step());
      while (!is_done() && refine()) ++next_;
      if (next_ == begin) return false;
      const auto first = static_cast<std::int64_t>(found.table_size());
      found.first_.push_back(first);
      for (Step step : steps_) {
        if (step.shorter >= 0) step.shorter += first;
        found.steps_.push_back(step);
      }
      found.pieces_.insert(found.pieces_.end(), piece_.begin(), piece_.end());
      return true;
    }

   private:
    /// Tells pieces apart by the next column as well; if that makes too many, it changes nothing.
    bool refine() {
      const auto& column = columns_[next_];
      const std::size_t before = steps_.size();
      longer_.clear();
      changed_.clear();
      for (const auto& [row, e] : column) {
        const std::uint16_t shorter = piece_[static_cast<std::size_t>(row)];
        const T value = values_ == nullptr ? T(1) : values_[e];
        const std::pair key(shorter, std::bit_cast<std::uint64_t>(static_cast<double>(value)));
        const auto [found, is_new] = longer_.try_emplace(key, steps_.size());
        if (is_new) {
          if (steps_.size() == kMostPieces) {
            steps_.resize(before);
            return false;
          }
          steps_.push_back({shorter, static_cast<std::int64_t>(next_), value});
        }
        changed_.push_back(static_cast<std::uint16_t>(found->second));
      }
      for (std::size_t k = 0; k < column.size(); ++k) {
        piece_[static_cast<std::size_t>(column[k].first)] = changed_[k];
      }
      return true;
    }

    const T* values_;
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> columns_;  ///< (row, entry)
    std::size_t next_ = 0;                                                     ///< column
    std::vector<std::uint16_t> piece_;  ///< of every row, in the range
    std::vector<Step> steps_;           ///< to the pieces of the range
    std::map<std::pair<std::uint16_t, std::uint64_t>, std::size_t> longer_;
    std::vector<std::uint16_t> changed_;
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

  std::int64_t n_;
  std::vector<std::uint16_t> pieces_;  ///< by range, then by row
  std::vector<std::int64_t> first_;    ///< by range: its first piece in the table
  std::vector<Step> steps_;            ///< by piece
};

}  // namespace buropt
