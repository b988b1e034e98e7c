// RankR: the nearest matrix of rank R. alpha = R / min(a, c).
#pragma once

#include "compress/extreme_eigen.h"
#include "compress/low_rank.h"

namespace buropt {

struct RankR {
  static constexpr const char* kName = "RankR";
  static constexpr bool kOrthonormalP = false;

  /// Q: eigenvectors of M^T M for the largest eigenvalues, the largest first; P = M Q.
  static void factorize(const Factors& f, const Draw&, Scratch& scratch) {
    const std::size_t c = f.columns;
    const std::size_t size = c * c + ExtremeEigen::memory_size(c, f.rank);
    double* gram = reserve(scratch.inner().matrices, size);
    std::fill_n(gram, c * c, 0.0);
    for (std::size_t i = 0; i < f.rows; ++i) {
      const std::span<const double> row = f.m_row(i);
      for (std::size_t j = 0; j < c; ++j) {
        add_multiple(row[j], row.first(j + 1), {gram + j * c, j + 1});
      }
    }
    for (std::size_t i = 0; i < c; ++i) {
      for (std::size_t j = 0; j < i; ++j) gram[j * c + i] = gram[i * c + j];
    }
    const ExtremeEigen eigen(gram, c, f.rank, gram + c * c);
    for (std::size_t r = 0; r < f.rank; ++r) {
      std::ranges::copy(eigen.vector_of(r), f.q_column(r).begin());
    }
    multiply_right(f);
  }
};

}  // namespace buropt
