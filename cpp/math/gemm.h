// Matrix product for tall-skinny and small matrices: C = epilogue of init + op(A) op(B).
//
// Order of summation. An element depends on its row of A, its column of B, k and the form that is
// taken, which m has no part in: a row has the same bits however the rows are cut into tiles or
// dealt out to threads.
// - In the form of dot products (see uses_dots), the inner index p is cut into blocks of
//   kGemmDotBlock. In a block, lane l of a register is one chain of multiply-adds over
//   p = l, l + lanes, ... that starts at zero; then the lanes are added in pairs.
// - Otherwise p is cut into blocks of kGemmBlock, and a block is one chain of multiply-adds over
//   p = 0, 1, ... that starts at zero; in the form of pairs (see uses_pairs), one over even p plus
//   one over odd p.
// The blocks' sums are added to init in order, and the epilogue follows.
#pragma once

#include <cstdint>

#include "math/gemm_epilogue.h"
#include "math/lanes.h"

namespace buropt {

inline constexpr std::int64_t kGemmBlock = 256;
inline constexpr std::int64_t kGemmDotBlock = 1024;

/// C (m, n) = epilogue of init + op(A) (m, k) op(B) (k, n). Strides are in elements, all storage is
/// row-major. C may not overlap A or B, nor a matrix of the epilogue in any way but by being it.
template <class T>
struct Gemm : GemmEpilogue<T> {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  /// Rows that always come together, such as those of one sample. It serves to choose the form.
  std::int64_t sample_rows = 1;
  /// Whether these are some columns of a product; so does it.
  bool is_part = false;

  /// op(A)[i, p] = a[i * a_row + p * a_col]: (lda, 1) for A, (1, lda) for its transpose.
  const T* a = nullptr;
  std::int64_t a_row = 0;
  std::int64_t a_col = 1;

  /// op(B)[p, j] = b[p * ldb + j], or b[j * ldb + p] when b_transposed.
  const T* b = nullptr;
  std::int64_t ldb = 0;
  bool b_transposed = false;

  T* c = nullptr;
  std::int64_t ldc = 0;

  /// What the product is added to: nullptr for zeros; c with init_row = ldc to accumulate; another
  /// matrix; with init_row = 0 a row.
  const T* init = nullptr;
  std::int64_t init_row = 0;
};

/// Whether both operands lie with p contiguous, and k is long enough to sum the lanes of registers
/// at the end, rather than to transpose B: that pays the less, the more rows there are.
template <class T>
bool uses_dots(const Gemm<T>& g) noexcept {
  return g.b_transposed && g.a_col == 1 && g.k >= (g.sample_rows < 8 ? 64 : 512);
}

/// Whether n columns end with half a register, and are few enough for it to matter.
template <class T>
bool ends_with_half(std::int64_t n) noexcept {
  constexpr std::int64_t kLanes = Pack<T>::size;
  return kRegisters == 32 && sizeof(T) == 4 && n > kLanes && n < 8 * kLanes &&
         n % kLanes == kLanes / 2;
}

/// Whether registers hold the sums over even and odd p of half as many columns, so that no half of
/// one is wasted. It takes rows of A that lie contiguous, and a few to pay for arranging B.
template <class T>
bool uses_pairs(const Gemm<T>& g) noexcept {
  return ends_with_half<T>(g.n) && g.a_col == 1 && g.sample_rows >= 4 && !g.is_part &&
         !uses_dots(g);
}

/// Rows [i, i + m) and columns [j, j + n) of C. They have the same bits as in the whole; but one
/// that uses_pairs is not to be cut into columns.
template <class T>
Gemm<T> block_of(Gemm<T> g, std::int64_t i, std::int64_t m, std::int64_t j,
                 std::int64_t n) noexcept {
  const auto move = [](auto& p, std::int64_t distance) {
    if (p != nullptr) p += distance;
  };
  g.is_part = g.is_part || n < g.n;
  g.m = m;
  g.n = n;
  move(g.a, i * g.a_row);
  move(g.b, j * (g.b_transposed ? g.ldb : 1));
  move(g.c, i * g.ldc + j);
  move(g.init, i * g.init_row + j);
  move(g.bias, j);
  move(g.residual, i * g.residual_row + j);
  move(g.mask, i * g.mask_row + j);
  return g;
}

/// Elements of scratch that gemm needs for this or smaller m, n and k; zero when it reads B where
/// it lies.
template <class T>
std::int64_t gemm_scratch(std::int64_t m, std::int64_t n, std::int64_t k,
                          bool b_transposed) noexcept;

/// Computes C. `scratch` holds gemm_scratch elements; it may be nullptr when that is zero.
template <class T>
void gemm(const Gemm<T>& g, T* scratch) noexcept;

extern template std::int64_t gemm_scratch<float>(std::int64_t, std::int64_t, std::int64_t,
                                                 bool) noexcept;
extern template std::int64_t gemm_scratch<double>(std::int64_t, std::int64_t, std::int64_t,
                                                  bool) noexcept;
extern template void gemm<float>(const Gemm<float>&, float*) noexcept;
extern template void gemm<double>(const Gemm<double>&, double*) noexcept;

}  // namespace buropt
