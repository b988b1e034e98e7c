// RankR: the nearest matrix of rank R. alpha = R / min(a, c).
#pragma once

#include "compress/low_rank.h"
#include "math/eigh.h"

namespace buropt {

struct RankR {
  static constexpr const char* kName = "RankR";
  static constexpr bool kOrthonormalP = false;

  /// Q: eigenvectors of M^T M for the largest eigenvalues, the largest first; P = M Q.
  static void factorize(const Factors& f, const Draw&, Scratch& scratch) {
    const std::size_t c = f.columns;
    std::vector<double>& memory = scratch.inner().matrices;
    double* gram = reserve(memory, 4 * c * c + c);
    std::fill_n(gram, c * c, 0.0);
    for (std::size_t i = 0; i < f.rows; ++i) {
      const std::span<const double> row = f.m_row(i);
      for (std::size_t j = 0; j < c; ++j) {
        add_multiple(row[j], row.first(j + 1), {gram + j * c, j + 1});
      }
    }
    double* vectors = gram + c * c;
    double* eigenvalues = vectors + c * c;
    std::vector<std::int64_t> order(c);
    eigh(gram, static_cast<std::int64_t>(c), eigenvalues, vectors, eigenvalues + c, order.data());
    for (std::size_t r = 0; r < f.rank; ++r) {
      for (std::size_t j = 0; j < c; ++j) f.q_column(r)[j] = vectors[j * c + (c - 1 - r)];
    }
    multiply_right(f);
  }
};

}  // namespace buropt
