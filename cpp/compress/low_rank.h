// Compressors that take the vector for a matrix M, a x c, and send P Q^T, of low rank. A message is
// the factors P (a x rank) and Q (c x rank), row by row, IEEE.
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

  /// The place of entry i of the vector.
  std::size_t place(std::size_t i) const noexcept {
    const std::size_t width = transposed ? rows : columns;
    return transposed ? i % width * columns + i / width : i;
  }
};

/// What a rule gets to see: M with its largest magnitude in [1, 2), and where its factors go.
struct Factors {
  const double* m;  // rows x columns
  double* p;        // rows x rank
  double* q;        // columns x rank
  std::size_t rows, columns, rank;
};

/// p = m q.
inline void multiply_right(const Factors& f) noexcept {
  for (std::size_t i = 0; i < f.rows; ++i) {
    double* row = f.p + i * f.rank;
    std::fill_n(row, f.rank, 0.0);
    for (std::size_t j = 0; j < f.columns; ++j) {
      const double entry = f.m[i * f.columns + j];
      for (std::size_t r = 0; r < f.rank; ++r)
        row[r] += rounded_product(entry, f.q[j * f.rank + r]);
    }
  }
}

/// q = m^T p.
inline void multiply_left(const Factors& f) noexcept {
  std::fill_n(f.q, f.columns * f.rank, 0.0);
  for (std::size_t i = 0; i < f.rows; ++i) {
    const double* row = f.p + i * f.rank;
    for (std::size_t j = 0; j < f.columns; ++j) {
      const double entry = f.m[i * f.columns + j];
      for (std::size_t r = 0; r < f.rank; ++r)
        f.q[j * f.rank + r] += rounded_product(entry, row[r]);
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
    for (std::size_t i = 0; i < n; ++i) to.put_value(scratch.values<T>()[i]);
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
    const auto [rows, columns, transposed] = shape_of(static_cast<std::uint32_t>(x.size()));
    const MatrixShape shape{rows, columns, transposed};
    const std::size_t n = (rows + columns) * rank_;
    T* factors = reserve(scratch.values<T>(), n);
    const double largest = norm_inf(x);
    if (!std::isfinite(largest)) {
      std::fill_n(factors, n, std::numeric_limits<T>::quiet_NaN());
      return n;
    }
    int exponent = 0;
    std::frexp(largest, &exponent);
    double* m = reserve(scratch.matrices, rows * columns + n);
    std::fill_n(m, rows * columns, 0.0);
    for (std::size_t i = 0; i < x.size(); ++i) {
      m[shape.place(i)] = std::ldexp(static_cast<double>(x[i]), 1 - exponent);
    }
    double* p = m + rows * columns;
    double* q = p + rows * rank_;
    Rule::factorize({m, p, q, rows, columns, rank_}, draw, scratch);
    double* scaled = Rule::kOrthonormalP ? q : p;  // the other has columns of length 1
    const std::size_t n_scaled = (Rule::kOrthonormalP ? columns : rows) * rank_;
    for (std::size_t i = 0; i < n_scaled; ++i) scaled[i] = std::ldexp(scaled[i], exponent - 1);
    for (std::size_t i = 0; i < n; ++i) factors[i] = static_cast<T>(p[i]);
    return n;
  }

  template <class T>
  void multiply(const T* factors, std::span<T> out) const noexcept {
    const MatrixShape shape = shape_of(static_cast<std::uint32_t>(out.size()));
    const T* q = factors + shape.rows * rank_;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::size_t place = shape.place(i);
      const T* p_row = factors + place / shape.columns * rank_;
      const T* q_row = q + place % shape.columns * rank_;
      double sum = 0;
      for (std::size_t r = 0; r < rank_; ++r) {
        sum += rounded_product(static_cast<double>(p_row[r]), static_cast<double>(q_row[r]));
      }
      out[i] = static_cast<T>(sum);
    }
  }

  std::uint32_t rank_;
  std::uint32_t n_rows_;
};

}  // namespace buropt
