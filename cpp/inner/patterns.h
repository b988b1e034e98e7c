// Products with a sparse matrix whose rows repeat each other piece by piece.
//
// Features that stand for categories are ones in a few groups of columns, and a group has far fewer
// different rows than there are samples. So the columns are cut into ranges in which the rows have
// few different pieces. A product with x is then one look-up for each row and range, in a table of
// the products of the pieces, whatever the number of entries: 3 look-ups on a9a, where a row has 14
// entries. The numbers of four pieces are one word, since loads are what the look-ups wait for. The
// idea is that of compressed linear algebra (Elgohary et al., PVLDB 9(12), 2016).
#pragma once

#include <algorithm>
#include <array>
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
      const std::size_t look_ups = result.first_.size() * static_cast<std::size_t>(n);
      if (static_cast<std::int64_t>(look_ups + result.table_size()) > most) return std::nullopt;
    }
    return search.is_done() ? std::optional(std::move(result)) : std::nullopt;
  }

  /// Elements of scratch that `times` needs: the products of all pieces.
  std::size_t table_size() const noexcept { return shorter_.size(); }

  /// z (n,) = A x (d,). Order of summation: within a piece, over the pieces of a word, the words.
  void times(const T* x, T* z, T* table, int threads) const {
    fill(x, table);
    Pool::run(ceil_div(n_, kBlock), threads, [&](std::int64_t block, int) {
      const std::int64_t from = block * kBlock;
      const std::int64_t count = std::min(kBlock, n_ - from);
      for (std::size_t range = 0; range < first_.size(); range += kPieces) {
        const std::uint64_t* words =
            words_.data() + static_cast<std::int64_t>(range / kPieces) * n_ + from;
        switch (std::min(kPieces, first_.size() - range)) {
          case 1:
            return look_up<1>(range, words, count, table, z + from);
          case 2:
            return look_up<2>(range, words, count, table, z + from);
          case 3:
            return look_up<3>(range, words, count, table, z + from);
          default:
            look_up<kPieces>(range, words, count, table, z + from);
        }
      }
    });
  }

 private:
  static constexpr std::size_t kMostPieces = 2048;  // of a range: their products stay near
  static constexpr std::size_t kPieces = 4;         // in a word
  static constexpr int kPieceBits = 16;
  static constexpr std::uint64_t kPieceMask = (1 << kPieceBits) - 1;
  static constexpr std::int64_t kBlock = 2048;  // rows of a task

  /// Pieces begin..end-1 are shorter pieces of their range and one more entry, all in one column.
  struct Run {
    std::size_t begin;
    std::size_t end;
    std::size_t first;  ///< of the range, which is the empty one
    std::size_t column;
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
      if (is_done()) return false;
      const std::size_t begin = next_;
      const std::size_t first = found.table_size();
      std::fill(piece_.begin(), piece_.end(), 0);
      pieces_ = 1;
      found.add_piece(0, 0);
      while (!is_done() && refine(found, first)) ++next_;
      if (next_ == begin) return false;
      found.add_range(first, piece_);
      return true;
    }

   private:
    /// Tells pieces apart by the next column as well; if that makes too many, it changes nothing.
    bool refine(RowPatterns& found, std::size_t first) {
      const auto& column = columns_[next_];
      longer_.clear();
      changed_.clear();
      new_.clear();
      for (const auto& [row, e] : column) {
        const std::uint16_t shorter = piece_[static_cast<std::size_t>(row)];
        const T value = values_ == nullptr ? T(1) : values_[e];
        const std::pair key(shorter, std::bit_cast<std::uint64_t>(static_cast<double>(value)));
        const auto [piece, is_new] = longer_.try_emplace(key, pieces_ + new_.size());
        if (is_new) {
          if (piece->second == kMostPieces) return false;
          new_.emplace_back(shorter, value);
        }
        changed_.push_back(static_cast<std::uint16_t>(piece->second));
      }
      for (std::size_t k = 0; k < column.size(); ++k) {
        piece_[static_cast<std::size_t>(column[k].first)] = changed_[k];
      }
      for (const auto& [shorter, value] : new_) found.add_piece(shorter, value);
      const std::size_t begin = first + pieces_;
      pieces_ += new_.size();
      found.runs_.push_back({begin, begin + new_.size(), first, next_});
      return true;
    }

    const T* values_;
    std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> columns_;  ///< (row, entry)
    std::size_t next_ = 0;                                                     ///< column
    std::vector<std::uint16_t> piece_;  ///< of every row, in the range
    std::size_t pieces_ = 0;            ///< of the range
    std::map<std::pair<std::uint16_t, std::uint64_t>, std::size_t> longer_;
    std::vector<std::uint16_t> changed_;
    std::vector<std::pair<std::uint16_t, T>> new_;  ///< shorter piece and value
  };

  explicit RowPatterns(std::int64_t n) : n_(n) {}

  void add_piece(std::uint16_t shorter, T value) {
    shorter_.push_back(shorter);
    values_.push_back(value);
  }

  void add_range(std::size_t first, const std::vector<std::uint16_t>& piece) {
    const std::size_t place = first_.size() % kPieces;
    if (place == 0) words_.resize(words_.size() + piece.size());
    std::uint64_t* words = words_.data() + words_.size() - piece.size();
    for (std::size_t row = 0; row < piece.size(); ++row) {
      words[row] |= std::uint64_t{piece[row]} << (kPieceBits * place);
    }
    first_.push_back(first);
  }

  void fill(const T* x, T* table) const noexcept {
    for (const std::size_t first : first_) table[first] = 0;
    for (const Run& run : runs_) {
      const T factor = x[run.column];
      for (std::size_t p = run.begin; p < run.end; ++p) {
        table[p] = multiply_add(values_[p], factor, table[run.first + shorter_[p]]);
      }
    }
  }

  /// The pieces of one word of each row, the first of them in this range; later words are added.
  template <std::size_t pieces>
  void look_up(std::size_t range, const std::uint64_t* words, std::int64_t count, const T* table,
               T* z) const noexcept {
    std::array<const T*, pieces> products;
    for (std::size_t k = 0; k < pieces; ++k) products[k] = table + first_[range + k];
    for (std::int64_t row = 0; row < count; ++row) {
      const std::uint64_t word = words[row];
      const auto product = [&](std::size_t k) {
        const std::uint64_t rest = word >> (kPieceBits * k);  // of the last, nothing else
        return products[k][k + 1 < pieces ? rest & kPieceMask : rest];
      };
      T sum = product(0);
#pragma GCC unroll 4
      for (std::size_t k = 1; k < pieces; ++k) sum += product(k);
      z[row] = range == 0 ? sum : z[row] + sum;
    }
  }

  std::int64_t n_;
  std::vector<std::uint64_t> words_;    ///< by four ranges, then by row: its pieces
  std::vector<std::size_t> first_;      ///< by range: its first piece in the table
  std::vector<Run> runs_;               ///< in an order in which shorter pieces come first
  std::vector<std::uint16_t> shorter_;  ///< by piece, counted from the first of the range
  std::vector<T> values_;               ///< by piece: of its last entry
};

}  // namespace buropt
