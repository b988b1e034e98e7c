// Compressors that take the vector for a matrix M, a x c, and send P Q^T, of low rank. A message is
// the columns of P (a x rank) and those of Q (c x rank), IEEE.
//
// The vector fills the matrix row by row; a last row that is too short ends in zeros, which the
// receiver drops. A wide matrix is transposed, so a >= c. Non-finite vectors give NaN everywhere.
#pragma once

#include <algorithm>
#include <cmath>

#include "compress/norms.h"
#include "compress/selector.h"

namespace buropt {

/// A tall matrix of doubles, row-major.
struct MatrixShape {
  std::size_t rows, columns;
  bool transposed;  // whether the vector's rows are its columns

  /// Calls f(entry of the vector, its row, its column) for n entries.
  template <class F>
  void each_entry(std::size_t n, F&& f) const {
    const std::size_t width = transposed ? rows : columns;
    for (std::size_t first = 0, line = 0; first < n; first += width, ++line) {
      const std::size_t stop = std::min(width, n - first);
      for (std::size_t i = 0; i < stop; ++i) {
        f(first + i, transposed ? i : line, transposed ? line : i);
      }
    }
  }
};

/// Brings numbers to the middle of the range, exactly, where their squares are normal numbers.
class PowerOfTwo {
 public:
  /// Such that the largest magnitude comes to lie in [1, 2); for numbers that are finite.
  explicit PowerOfTwo(double largest) noexcept {
    std::frexp(largest, &exponent_);
    const int down = 1 - exponent_;  // 2^down may be infinite
    half_ = std::ldexp(1.0, down / 2);
    rest_ = std::ldexp(1.0, down - down / 2);
  }

  double down(double x) const noexcept { return x * half_ * rest_; }
  double up(double x) const noexcept { return std::ldexp(x, exponent_ - 1); }

 private:
  int exponent_ = 0;
  double half_, rest_;
};

/// What a rule gets to see: M with its largest magnitude in [1, 2), and where its factors go.
struct Factors {
  const double* m;  // rows x columns
  double* p;        // rank columns of `rows` numbers each
  double* q;        // rank columns of `columns` numbers each
  std::size_t rows, columns, rank;

  std::span<double> p_column(std::size_t r) const noexcept { return {p + r * rows, rows}; }
  std::span<double> q_column(std::size_t r) const noexcept { return {q + r * columns, columns}; }
  std::span<const double> m_row(std::size_t i) const noexcept { return {m + i * columns, columns}; }
};

/// p = m q.
inline void multiply_right(const Factors& f) noexcept {
  for (std::size_t r = 0; r < f.rank; ++r) {
    for (std::size_t i = 0; i < f.rows; ++i) f.p_column(r)[i] = product(f.m_row(i), f.q_column(r));
  }
}

/// q = m^T p.
inline void multiply_left(const Factors& f) noexcept {
  for (std::size_t r = 0; r < f.rank; ++r) {
    std::fill_n(f.q_column(r).data(), f.columns, 0.0);
    for (std::size_t i = 0; i < f.rows; ++i) {
      add_multiple(f.p_column(r)[i], f.m_row(i), f.q_column(r));
    }
  }
}

template <class Rule>
class LowRankOf final : public ForFloats<LowRankOf<Rule>> {
 public:
  LowRankOf(std::uint32_t rank, std::uint32_t n_rows) : rank_(rank), n_rows_(n_rows) {}

  const char* name() const noexcept override { return Rule::kName; }

  void check(std::uint32_t d) const override {
    const MatrixShape shape = shape_of(d);
    if (rank_ <= shape.columns) return;
    raise(ErrorKind::value,
          "%s.rank must be at most %zu, the smaller side of the matrix of d = %u entries, got %u; "
          "lower compressor.rank",
          name(), shape.columns, d, rank_);
  }

  template <class T>
  std::int64_t compress_row(std::span<const T> x, const Draw& draw, Scratch& scratch,
                            std::span<T> out) const {
    const std::size_t n = factorize(x, draw, scratch);
    multiply(scratch.values<T>().data(), out);
    return static_cast<std::int64_t>(n) * kValueBits<T>;
  }

  template <class T>
  void encode_row(std::span<const T> x, const Draw& draw, Scratch& scratch, BitWriter& to) const {
    const std::size_t n = factorize(x, draw, scratch);
    const T* factors = scratch.values<T>().data();
    to.put_values<T>(n, [=](std::size_t i) { return factors[i]; });
  }

  template <class T>
  void decode_row(BitReader& from, const Draw&, Scratch& scratch, std::span<T> out) const {
    const MatrixShape shape = shape_of(static_cast<std::uint32_t>(out.size()));
    const std::size_t n = (shape.rows + shape.columns) * rank_;
    this->template expect<T>(from, std::uint64_t{n} * kValueBits<T>, out.size());
    T* factors = reserve(scratch.values<T>(), n);
    for (std::size_t i = 0; i < n; ++i) factors[i] = from.get_value<T>();
    multiply(factors, out);
  }

 private:
  /// With n_rows = 0 the matrix is as square as can be.
  MatrixShape shape_of(std::uint32_t d) const noexcept {
    std::size_t rows = n_rows_;
    if (rows == 0) {
      rows = static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(d))));
    }
    const std::size_t columns = (d + rows - 1) / rows;
    return {std::max(rows, columns), std::min(rows, columns), rows < columns};
  }

  /// Puts both factors in scratch.values as numbers of the message; returns how many they are.
  template <class T>
  std::size_t factorize(std::span<const T> x, const Draw& draw, Scratch& scratch) const {
    const MatrixShape shape = shape_of(static_cast<std::uint32_t>(x.size()));
    const std::size_t rows = shape.rows, columns = shape.columns;
    const std::size_t n = (rows + columns) * rank_;
    T* factors = reserve(scratch.values<T>(), n);
    const double largest = norm_inf(x);
    if (!std::isfinite(largest)) {
      std::fill_n(factors, n, std::numeric_limits<T>::quiet_NaN());
      return n;
    }
    const PowerOfTwo scale(largest);
    double* m = reserve(scratch.matrices, rows * columns + n);
    std::fill_n(m, rows * columns, 0.0);
    shape.each_entry(x.size(), [=](std::size_t i, std::size_t row, std::size_t column) {
      m[row * columns + column] = scale.down(static_cast<double>(x[i]));
    });
    double* p = m + rows * columns;
    double* q = p + rows * rank_;
    Rule::factorize({m, p, q, rows, columns, rank_}, draw, scratch);
    double* scaled = Rule::kOrthonormalP ? q : p;  // the other has columns of length 1
    const std::size_t n_scaled = (Rule::kOrthonormalP ? columns : rows) * rank_;
    for (std::size_t i = 0; i < n_scaled; ++i) scaled[i] = scale.up(scaled[i]);
    for (std::size_t i = 0; i < n; ++i) factors[i] = static_cast<T>(p[i]);
    return n;
  }

  template <class T>
  void multiply(const T* factors, std::span<T> out) const noexcept {
    const MatrixShape shape = shape_of(static_cast<std::uint32_t>(out.size()));
    const T* q = factors + shape.rows * rank_;
    shape.each_entry(out.size(), [=, this](std::size_t i, std::size_t row, std::size_t column) {
      double sum = 0;
      for (std::size_t r = 0; r < rank_; ++r) {
        sum += rounded_product(static_cast<double>(factors[r * shape.rows + row]),
                               static_cast<double>(q[r * shape.columns + column]));
      }
      out[i] = static_cast<T>(sum);
    });
  }

  std::uint32_t rank_;
  std::uint32_t n_rows_;
};

}  // namespace buropt
