// The cofactor matrix, which is the derivative of the determinant, and its own derivatives of any
// order, of regular and singular matrices alike.
//
// With complete pivoting P A Q = L D U, where L and U are unit triangles with elements of at most 1
// and D is diagonal. The determinant of A + sum t_i E_i is then, up to the sign of the
// permutations, that of D + sum t_i F_i with F_i = L^-1 P E_i Q U^-1, and its derivative by the t_i
// is a sum over minors of the F_i times products of the remaining elements of D. Nothing is divided
// by an element of D, so zeros there do no harm.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <span>

#include "math/triangular.h"

namespace buropt {

/// Directions of a derivative, at most.
inline constexpr std::size_t kMaxDirections = 7;

/// P A Q = L D U, in memory of the caller.
template <class T>
class CompletePivoting {
 public:
  /// lu: A (n, n), which becomes L and U with D on the diagonal; order: 2 n integers.
  CompletePivoting(T* lu, std::int64_t* order, std::int64_t n) noexcept
      : lu_(lu), rows_(order), columns_(order + n), n_(n) {
    for (std::int64_t i = 0; i < n; ++i) rows_[i] = columns_[i] = i;
    for (std::int64_t k = 0; k < n; ++k) {
      bring_largest_to(k);
      const T pivot = at(k, k);
      if (pivot == T(0)) return;  // so is all that is left
      for (std::int64_t i = k + 1; i < n; ++i) {
        at(i, k) /= pivot;
        subtract_multiple(at(i, k), &at(k, k) + 1, &at(i, k) + 1, n - k - 1);
      }
      divide(&at(k, k) + 1, pivot, n - k - 1);
    }
  }

  T diagonal(std::int64_t i) const noexcept { return lu_[i * n_ + i]; }
  T sign() const noexcept { return sign_; }

  /// f = L^-1 P e Q U^-1.
  void reduce(const T* e, T* f) const noexcept {
    for (std::int64_t i = 0; i < n_; ++i) {
      for (std::int64_t j = 0; j < n_; ++j) f[i * n_ + j] = e[rows_[i] * n_ + columns_[j]];
    }
    solve_lower(Triangle<T>{lu_, n_, true}, f, n_);
    for (std::int64_t i = 0; i < n_; ++i) {
      for (std::int64_t j = 0; j < n_; ++j) {
        subtract_multiple(f[i * n_ + j], &at(j, j) + 1, f + i * n_ + j + 1, n_ - j - 1);
      }
    }
  }

  /// e = P^T L^-T f U^-T Q^T; f is overwritten.
  void restore(T* f, T* e) const noexcept {
    solve_lower_transposed(Triangle<T>{lu_, n_, true}, f, n_);
    for (std::int64_t i = 0; i < n_; ++i) {
      T* row = f + i * n_;
      for (std::int64_t j = n_ - 1; j >= 0; --j) {
        row[j] -= dot(&at(j, j) + 1, row + j + 1, n_ - j - 1);
      }
      for (std::int64_t j = 0; j < n_; ++j) e[rows_[i] * n_ + columns_[j]] = row[j];
    }
  }

 private:
  T& at(std::int64_t i, std::int64_t j) const noexcept { return lu_[i * n_ + j]; }

  /// Exchanges rows and columns so that the largest remaining element (or a NaN) is the pivot.
  void bring_largest_to(std::int64_t k) noexcept {
    std::int64_t row = k;
    std::int64_t column = k;
    for (std::int64_t i = k; i < n_; ++i) {
      for (std::int64_t j = k; j < n_; ++j) {
        if (!(std::abs(at(i, j)) <= std::abs(at(row, column)))) row = i, column = j;
      }
    }
    if (row != k) {
      std::swap_ranges(&at(k, 0), &at(k, 0) + n_, &at(row, 0));
      std::swap(rows_[k], rows_[row]);
      sign_ = -sign_;
    }
    if (column != k) {
      for (std::int64_t i = 0; i < n_; ++i) std::swap(at(i, k), at(i, column));
      std::swap(columns_[k], columns_[column]);
      sign_ = -sign_;
    }
  }

  T* lu_;
  std::int64_t* rows_;
  std::int64_t* columns_;
  std::int64_t n_;
  T sign_ = 1;
};

/// The derivative by t_1 ... t_m of the cofactor matrix of D + sum t_i F_i, D diagonal.
///
/// Each set of m + 1 rows contributes to the elements in those rows and columns: a permutation
/// picks a column for each row; one of the rows is that of the cofactor, the others take their
/// element from one F_i each.
template <class T>
class DiagonalCofactor {
 public:
  /// remaining: n + 1 numbers of the caller's.
  DiagonalCofactor(const CompletePivoting<T>& factors, std::span<const T* const> f, T* remaining,
                   std::int64_t n, T* out) noexcept
      : factors_(factors), f_(f), remaining_(remaining), n_(n), out_(out) {
    std::fill_n(out, n * n, T(0));
    remaining[n] = 1;
    for (std::int64_t i = n - 1; i >= 0; --i) {
      remaining[i] = factors.diagonal(i) * remaining[i + 1];
    }
    choose_rows(0, 0, T(1));
  }

 private:
  std::size_t count() const noexcept { return f_.size() + 1; }

  /// weight: the product of the diagonal over the rows before `from` that were not chosen.
  void choose_rows(std::size_t chosen, std::int64_t from, T weight) noexcept {
    if (weight == T(0)) return;
    if (chosen == count()) {
      weight *= remaining_[from];
      if (weight != T(0)) permute({0, 0, 0, 0, weight});
      return;
    }
    const auto missing = static_cast<std::int64_t>(count() - chosen);
    for (std::int64_t i = from; i + missing <= n_; ++i) {
      rows_[chosen] = i;
      choose_rows(chosen + 1, i + 1, weight);
      weight *= factors_.diagonal(i);
    }
  }

  struct Partial {
    std::size_t row;         ///< number of rows that have their column
    unsigned columns, used;  ///< taken columns and F's, as bits
    std::int64_t place;      ///< of the cofactor's element, once it is known
    T product;
  };

  void permute(const Partial& p) noexcept {
    if (p.row == count()) {
      out_[p.place] += p.product;
      return;
    }
    for (std::size_t column = 0; column < count(); ++column) {
      if ((p.columns >> column & 1) != 0) continue;
      const bool odd = std::popcount(p.columns >> column) % 2 != 0;
      const T product = odd ? -p.product : p.product;
      const unsigned columns = p.columns | 1u << column;
      const std::int64_t place = rows_[p.row] * n_ + rows_[column];
      for (std::size_t k = 0; k < count(); ++k) {
        if ((p.used >> k & 1) != 0) continue;
        const unsigned used = p.used | 1u << k;
        if (k == f_.size())
          permute({p.row + 1, columns, used, place, product});
        else
          permute({p.row + 1, columns, used, p.place, product * f_[k][place]});
      }
    }
  }

  const CompletePivoting<T>& factors_;
  std::span<const T* const> f_;
  const T* remaining_;
  std::int64_t n_;
  T* out_;
  std::array<std::int64_t, kMaxDirections + 1> rows_{};
};

/// Elements of scratch that `cofactor` needs.
inline std::int64_t cofactor_scratch(std::int64_t n, std::int64_t directions) noexcept {
  return (directions + 2) * n * n + n + 1;
}

/// out (n, n) = the derivative of the cofactor matrix of A along each of the directions once (at
/// most kMaxDirections); the cofactor matrix itself if there is none. order: 2 n integers.
template <class T>
void cofactor(const T* a, std::span<const T* const> directions, std::int64_t n, T* out, T* scratch,
              std::int64_t* order) noexcept {
  const std::int64_t size = n * n;
  T* sum = scratch + size;
  T* reduced = sum + size;
  std::copy_n(a, size, scratch);
  const CompletePivoting<T> factors(scratch, order, n);
  std::array<const T*, kMaxDirections> f{};
  for (std::size_t k = 0; k < directions.size(); ++k, reduced += size) {
    factors.reduce(directions[k], reduced);
    f[k] = reduced;
  }
  DiagonalCofactor<T>(factors, {f.data(), directions.size()}, reduced, n, sum);
  for (std::int64_t i = 0; i < size; ++i) sum[i] *= factors.sign();
  factors.restore(sum, out);
}

}  // namespace buropt
