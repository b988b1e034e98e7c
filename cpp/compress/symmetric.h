// Compressors of symmetric matrices of low rank. The vector is the packed triangle of a (d, d)
// matrix (math/triangle.h), so its Euclidean norm is the Frobenius norm. Non-finite vectors give
// NaN everywhere.
#pragma once

#include <numbers>

#include "compress/extreme_eigen.h"
#include "compress/power_sgd.h"

namespace buropt {

/// d for a triangle of n entries; 0 if n is no d (d + 1) / 2.
inline std::size_t triangle_side(std::size_t n) noexcept {
  const auto d = static_cast<std::size_t>((std::sqrt(8.0 * static_cast<double>(n) + 1) - 1) / 2);
  for (std::size_t side = d == 0 ? 1 : d; side <= d + 1; ++side) {
    if (side * (side + 1) / 2 == n) return side;
  }
  return 0;
}

/// What a rule has: kName; n_signs(rank) bits of signs and n_vectors(rank) vectors of d entries in
/// a message; `factorize`, which makes them of a matrix; `entry` of the matrix that is received.
template <class Rule>
class SymmetricOf final : public ForFloats<SymmetricOf<Rule>> {
 public:
  explicit SymmetricOf(std::uint32_t rank) : rank_(rank) {}

  const char* name() const noexcept override { return Rule::kName; }

  void check(std::uint32_t n) const override {
    const std::size_t d = triangle_side(n);
    if (d == 0) {
      raise(ErrorKind::value,
            "%s: the triangle of a (d, d) matrix has d (d + 1) / 2 entries, not %u", name(), n);
    }
    if (rank_ <= d) return;
    raise(ErrorKind::value, "%s.rank must be at most %zu, the side of the matrix, got %u; lower it",
          name(), d, rank_);
  }

  template <class T>
  std::int64_t compress_row(std::span<const T> x, const Draw& draw, Scratch& scratch,
                            std::span<T> out) const {
    factorize(x, draw, scratch);
    multiply(scratch, out);
    return static_cast<std::int64_t>(n_numbers(x.size())) * kValueBits<T> + Rule::n_signs(rank_);
  }

  template <class T>
  void encode_row(std::span<const T> x, const Draw& draw, Scratch& scratch, BitWriter& to) const {
    factorize(x, draw, scratch);
    const T* numbers = scratch.values<T>().data();
    to.put_values<T>(n_numbers(x.size()), [=](std::size_t i) { return numbers[i]; });
    to.put_all(scratch.indices.data(), Rule::n_signs(rank_), 1);
  }

  template <class T>
  void decode_row(BitReader& from, const Draw&, Scratch& scratch, std::span<T> out) const {
    const std::size_t n = n_numbers(out.size());
    this->template expect<T>(from, std::uint64_t{n} * kValueBits<T> + Rule::n_signs(rank_),
                             out.size());
    T* numbers = reserve(scratch.values<T>(), n);
    for (std::size_t i = 0; i < n; ++i) numbers[i] = from.get_value<T>();
    std::uint32_t* signs = reserve(scratch.indices, rank_);
    for (std::uint32_t r = 0; r < Rule::n_signs(rank_); ++r) {
      signs[r] = from.get(1);
    }
    multiply(scratch, out);
  }

 private:
  std::size_t n_numbers(std::size_t n) const noexcept {
    return triangle_side(n) * Rule::n_vectors(rank_);
  }

  /// Puts the numbers of the message in scratch.values, and its signs in scratch.indices.
  template <class T>
  void factorize(std::span<const T> x, const Draw& draw, Scratch& scratch) const {
    const std::size_t d = triangle_side(x.size());
    const std::size_t n = n_numbers(x.size());
    T* numbers = reserve(scratch.values<T>(), n);
    std::uint32_t* signs = reserve(scratch.indices, rank_);
    std::fill_n(signs, rank_, 0u);
    const double largest = norm_inf(x);
    if (!std::isfinite(largest)) {
      std::fill_n(numbers, n, std::numeric_limits<T>::quiet_NaN());
      return;
    }
    double* m = reserve(scratch.matrices, d * d + n);
    double* factors = m + d * d;
    for (std::size_t row = 0, i = 0; row < d; ++row) {
      for (std::size_t column = row; column < d; ++column, ++i) {
        double entry = largest > 0 ? static_cast<double>(x[i]) / largest : 0.0;
        if (column > row) entry *= std::numbers::sqrt2 / 2;
        m[row * d + column] = m[column * d + row] = entry;
      }
    }
    Rule::factorize(m, d, rank_, largest, factors, signs, draw, scratch);
    for (std::size_t i = 0; i < n; ++i) numbers[i] = static_cast<T>(factors[i]);
  }

  template <class T>
  void multiply(Scratch& scratch, std::span<T> out) const noexcept {
    const std::size_t d = triangle_side(out.size());
    const T* numbers = scratch.values<T>().data();
    for (std::size_t row = 0, i = 0; row < d; ++row) {
      for (std::size_t column = row; column < d; ++column, ++i) {
        const double entry = Rule::entry(numbers, scratch.indices.data(), d, rank_, row, column);
        out[i] = static_cast<T>(column > row ? entry * std::numbers::sqrt2 : entry);
      }
    }
  }

  std::uint32_t rank_;
};

/// The eigenvalues of largest magnitude, the larger one of two with opposite signs: vectors
/// sqrt|w| v, and the signs of the w. alpha = R / d.
struct SymmetricRankR {
  static constexpr const char* kName = "SymmetricRankR";

  static std::uint32_t n_signs(std::uint32_t rank) noexcept { return rank; }
  static std::size_t n_vectors(std::uint32_t rank) noexcept { return rank; }

  static void factorize(const double* m, std::size_t d, std::uint32_t rank, double largest,
                        double* factors, std::uint32_t* signs, const Draw&, Scratch& scratch) {
    double* copy = reserve(scratch.inner().matrices, d * d + ExtremeEigen::memory_size(d, rank));
    std::copy_n(m, d * d, copy);
    const ExtremeEigen eigen(copy, d, rank, copy + d * d);
    for (std::uint32_t r = 0; r < rank; ++r) {
      const double size = std::sqrt(std::abs(eigen.value(r))) * std::sqrt(largest);
      const std::span<const double> vector = eigen.vector_of(r);
      for (std::size_t j = 0; j < d; ++j) factors[r * d + j] = size * vector[j];
      signs[r] = eigen.value(r) < 0;
    }
  }

  template <class T>
  static double entry(const T* numbers, const std::uint32_t* signs, std::size_t d,
                      std::uint32_t rank, std::size_t i, std::size_t j) noexcept {
    double sum = 0;
    for (std::uint32_t r = 0; r < rank; ++r) {
      const double term = rounded_product(static_cast<double>(numbers[r * d + i]),
                                          static_cast<double>(numbers[r * d + j]));
      sum += signs[r] != 0 ? -term : term;
    }
    return sum;
  }
};

/// PowerSGD's factors P and Q; the receiver takes the symmetric part of P Q^T, which is not farther
/// from a symmetric matrix. alpha = R / d in expectation.
struct SymmetricPowerSGD {
  static constexpr const char* kName = "SymmetricPowerSGD";

  static std::uint32_t n_signs(std::uint32_t) noexcept { return 0; }
  static std::size_t n_vectors(std::uint32_t rank) noexcept { return 2 * std::size_t{rank}; }

  static void factorize(const double* m, std::size_t d, std::uint32_t rank, double largest,
                        double* factors, std::uint32_t*, const Draw& draw, Scratch& scratch) {
    double* q = factors + d * rank;
    PowerSGD::factorize({m, factors, q, d, d, rank}, draw, scratch);
    for (std::size_t i = 0; i < d * rank; ++i) q[i] *= largest;
  }

  template <class T>
  static double entry(const T* numbers, const std::uint32_t*, std::size_t d, std::uint32_t rank,
                      std::size_t i, std::size_t j) noexcept {
    const T* q = numbers + d * rank;
    double sum = 0;
    for (std::size_t r = 0; r < rank; ++r) {
      sum += rounded_product(static_cast<double>(numbers[r * d + i]),
                             static_cast<double>(q[r * d + j])) +
             rounded_product(static_cast<double>(numbers[r * d + j]),
                             static_cast<double>(q[r * d + i]));
    }
    return sum / 2;
  }
};

}  // namespace buropt
