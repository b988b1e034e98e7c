// Loops around the register block: blocks of k, blocks of rows, strips of columns.
#include "math/gemm.h"

#include <algorithm>

#include "math/gemm_dots.h"
#include "math/gemm_micro.h"
#include "math/transpose.h"

namespace buropt {

namespace {

using detail::kGemmRows;

// How a product of a given shape is computed; never what it computes.
struct Plan {
  std::int64_t row_block;  // rows of A that stay in the second level of cache
  bool copies_a;           // to strips of kGemmRows rows, when A is large and used often
  bool copies_b;           // to dense panels, when B is transposed, or large and used often
};

template <class T>
Plan make_plan(std::int64_t m, std::int64_t n, std::int64_t k, bool b_transposed) noexcept {
  constexpr std::int64_t kRowBlock = 256;
  constexpr std::int64_t kElementBytes = sizeof(T);
  const bool copies_a = n >= 256 && m * k * kElementBytes >= (1 << 19);
  const bool copies_b = b_transposed || (m >= 48 && n * k * kElementBytes >= (1 << 17));
  return {copies_a ? std::min(m, kRowBlock) : m, copies_a, copies_b};
}

// Rows of the tallest register block, when m rows are cut as evenly as possible.
std::int64_t tallest_block(std::int64_t m) noexcept { return ceil_div(m, ceil_div(m, kGemmRows)); }

std::int64_t copied_a_rows(const Plan& plan) noexcept {
  return plan.copies_a ? ceil_div(plan.row_block, kGemmRows) * kGemmRows : 0;
}

// strip (k, kGemmRows) = rows i..i+rows of A, transposed.
template <class T>
void copy_a(const Gemm<T>& g, std::int64_t i, std::int64_t rows, T* strip) noexcept {
  const T* a = g.a + i * g.a_row;
  if (g.a_col == 1) return transpose(rows, g.k, a, g.a_row, strip, kGemmRows);
  for (std::int64_t p = 0; p < g.k; ++p) {
    for (std::int64_t r = 0; r < rows; ++r) strip[p * kGemmRows + r] = a[r * g.a_row + p * g.a_col];
  }
}

// panel (k, width) = columns j..j+width of op(B).
template <class T>
void copy_b(const Gemm<T>& g, std::int64_t j, std::int64_t width, T* panel) noexcept {
  if (g.b_transposed) return transpose(width, g.k, g.b + j * g.ldb, g.ldb, panel, width);
  for (std::int64_t p = 0; p < g.k; ++p) std::copy_n(g.b + p * g.ldb + j, width, panel + p * width);
}

// One register block; `rows` becomes a constant.
template <class T, int kRows, class Strip>
BUROPT_INLINE void call_block(std::int64_t rows, const detail::GemmBlock<T>& block,
                              Strip strip) noexcept {
  if constexpr (kRows > 1) {
    if (rows < kRows) return call_block<T, kRows - 1>(rows, block, strip);
  }
  // Strips with more vectors than this are only made for fewer rows.
  if constexpr (Strip::kPacks <= detail::gemm_packs(kRows)) {
    detail::gemm_block<T, kRows>(block, strip);
  }
}

// A block of rows, which begins at `row`, and of k; `rest` is nullptr before the last block of k.
template <class T>
void multiply_block(const Gemm<T>& g, const Plan& plan, const GemmEpilogue<T>* rest,
                    std::int64_t row, T* scratch) noexcept {
  const std::int64_t blocks = ceil_div(g.m, kGemmRows);
  const auto first_row = [&](std::int64_t block) { return part_begin(g.m, blocks, block); };
  T* const a_copy = scratch;
  T* const b_copy = scratch + copied_a_rows(plan) * std::min(g.k, kGemmBlock);
  if (plan.copies_a) {
    for (std::int64_t block = 0; block < blocks; ++block) {
      const std::int64_t i = first_row(block);
      copy_a(g, i, first_row(block + 1) - i, a_copy + block * kGemmRows * g.k);
    }
  }
  const std::int64_t max_packs = detail::gemm_packs(tallest_block(g.m));
  for_each_strip<T, detail::kGemmPacks>(g.n, max_packs, [&](auto strip) noexcept {
    detail::GemmBlock<T> block{};
    block.k = g.k;
    if (plan.copies_b) copy_b(g, strip.begin, strip.width, b_copy);
    block.b = plan.copies_b ? b_copy : g.b + strip.begin;
    block.ldb = plan.copies_b ? strip.width : g.ldb;
    block.a_row = plan.copies_a ? 1 : g.a_row;
    block.a_col = plan.copies_a ? kGemmRows : g.a_col;
    block.to = {nullptr, g.ldc, nullptr, g.init_row, rest, 0, strip.begin};
    for (std::int64_t s = 0; s < blocks; ++s) {
      const std::int64_t i = first_row(s);
      block.a = plan.copies_a ? a_copy + s * kGemmRows * g.k : g.a + i * g.a_row;
      block.to.c = g.c + i * g.ldc + strip.begin;
      block.to.init = g.init == nullptr ? nullptr : g.init + i * g.init_row + strip.begin;
      block.to.row = row + i;
      call_block<T, kGemmRows>(first_row(s + 1) - i, block, strip);
    }
  });
}

}  // namespace

template <class T>
std::int64_t gemm_scratch(std::int64_t m, std::int64_t n, std::int64_t k,
                          bool b_transposed) noexcept {
  if (m == 0 || n == 0) return 0;
  const Plan plan = make_plan<T>(m, n, k, b_transposed);
  // Fewer rows take wider panels, so the widest is assumed: the answer then serves any smaller m,
  // k.
  const std::int64_t widest = detail::kGemmPacks * Pack<T>::size;
  const std::int64_t panel = plan.copies_b ? std::min(n, widest) : 0;
  return std::min(k, kGemmBlock) * (copied_a_rows(plan) + panel);
}

template <class T>
void gemm(const Gemm<T>& g, T* scratch) noexcept {
  if (g.m == 0 || g.n == 0) return;
  if (uses_dots(g)) return gemm_by_dots(g);
  const Plan plan = make_plan<T>(g.m, g.n, g.k, g.b_transposed);
  Gemm<T> part = g;
  std::int64_t p = 0;
  do {
    part.k = std::min(kGemmBlock, g.k - p);
    const GemmEpilogue<T>* rest = p + part.k == g.k && !g.empty() ? &g : nullptr;
    for (std::int64_t i = 0; i < g.m; i += plan.row_block) {
      part.m = std::min(plan.row_block, g.m - i);
      part.a = g.a + i * g.a_row + p * g.a_col;
      part.b = g.b + p * (g.b_transposed ? 1 : g.ldb);
      part.c = g.c + i * g.ldc;
      // Later blocks of k add to what the first one left.
      part.init_row = p == 0 ? g.init_row : g.ldc;
      part.init = p > 0 ? part.c : g.init == nullptr ? nullptr : g.init + i * g.init_row;
      multiply_block(part, plan, rest, i, scratch);
    }
    p += part.k;
  } while (p < g.k);
}

template std::int64_t gemm_scratch<float>(std::int64_t, std::int64_t, std::int64_t, bool) noexcept;
template std::int64_t gemm_scratch<double>(std::int64_t, std::int64_t, std::int64_t, bool) noexcept;
template void gemm<float>(const Gemm<float>&, float*) noexcept;
template void gemm<double>(const Gemm<double>&, double*) noexcept;

}  // namespace buropt
