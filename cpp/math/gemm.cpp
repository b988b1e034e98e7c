// Loops around the register block: blocks of k, blocks of rows, strips of columns.
#include "math/gemm.h"

#include <algorithm>

#include "math/gemm_dots.h"
#include "math/gemm_micro.h"
#include "math/gemm_pairs.h"
#include "math/transpose.h"

namespace buropt {

namespace {

using detail::kGemmRows;

// How a product of a given shape is computed; never what it computes.
struct Plan {
  std::int64_t row_block;  // rows of A that stay in the second level of cache
  bool copies_a;           // to strips of kGemmRows rows, when A is large and used often
  bool copies_b;           // to dense panels, when B is transposed, or large and used often
  bool by_rows;  // all of a few rows of C before the next, so that C passes once, in order
};

// By rows, B has to stay in the second level of cache, and gemm must be bound by C.
constexpr std::int64_t kByRowsBytes = 1 << 19;
constexpr std::int64_t kByRowsDepth = 128;
constexpr std::int64_t kByRowsWidth = 256;

template <class T>
bool goes_by_rows(std::int64_t m, std::int64_t n, std::int64_t k) noexcept {
  constexpr std::int64_t kElementBytes = sizeof(T);
  const std::int64_t c_bytes = m * n * kElementBytes;
  return n >= kByRowsWidth && n * k * kElementBytes <= kByRowsBytes &&
         ((k <= 4 && c_bytes >= 3 << 14) || (k < kByRowsDepth && c_bytes >= 1 << 20));
}

template <class T>
Plan make_plan(std::int64_t m, std::int64_t n, std::int64_t k, bool b_transposed,
               bool by_rows) noexcept {
  constexpr std::int64_t kRowBlock = 256;
  constexpr std::int64_t kElementBytes = sizeof(T);
  const bool copies_b = b_transposed || (m >= 48 && n * k * kElementBytes >= (1 << 17));
  if (by_rows) return {m, k > 1, copies_b, true};
  const bool copies_a = n >= 256 && m * k * kElementBytes >= (1 << 19);
  return {copies_a ? std::min(m, kRowBlock) : m, copies_a, copies_b, false};
}

std::int64_t copied_a_rows(const Plan& plan) noexcept {
  if (!plan.copies_a) return 0;
  return plan.by_rows ? kGemmRows : ceil_div(plan.row_block, kGemmRows) * kGemmRows;
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
  if constexpr (kRows == kGemmRows && detail::kHasPairs<T, Strip>) {
    if (detail::takes_pairs(block, strip)) {
      return detail::gemm_pair_block<T, Strip::kPacks - 1>(block);
    }
  }
  // Strips with more vectors than this are only made for fewer rows.
  if constexpr (Strip::kPacks <= detail::gemm_packs(kRows)) {
    detail::gemm_block<T, kRows>(block, strip);
  }
}

template <class T, int kRows, int kPacks>
BUROPT_INLINE void call_paired_block(std::int64_t rows,
                                     const detail::GemmBlock<T>& block) noexcept {
  if constexpr (kRows > 1) {
    if (rows < kRows) return call_paired_block<T, kRows - 1, kPacks>(rows, block);
  }
  detail::gemm_paired_block<T, kRows, kPacks>(block);
}

// m rows as register blocks, as even as possible.
struct RowBlocks {
  std::int64_t count;
  std::int64_t least;   // rows of a block
  std::int64_t taller;  // blocks that have one more; they come first

  explicit RowBlocks(std::int64_t m) noexcept
      : count(ceil_div(m, kGemmRows)), least(kGemmRows), taller(0) {
    if (m % kGemmRows == 0) return;  // and spare a division
    least = m / count;
    taller = m - least * count;
  }
  std::int64_t first_row(std::int64_t block) const noexcept {
    return block * least + std::min(block, taller);
  }
  std::int64_t rows(std::int64_t block) const noexcept {
    return block < taller ? least + 1 : least;
  }
};

// A block of rows, which begins at `row`, and of k; `rest` is nullptr before the last block of k.
template <class T>
class BlockProduct {
 public:
  BlockProduct(const Gemm<T>& g, const Plan& plan, const GemmEpilogue<T>* rest, std::int64_t row,
               T* scratch) noexcept
      : g_(g),
        plan_(plan),
        rest_(rest),
        row_(row),
        rows_(g.m),
        a_copy_(scratch),
        b_copy_(scratch + copied_a_rows(plan) * std::min(g.k, kGemmBlock)) {}

  void multiply() const noexcept {
    if constexpr (kRegisters == 32 && sizeof(T) == 4) {
      if (uses_pairs(g_)) return multiply_pairs();
    }
    if (plan_.by_rows) return multiply_by_rows();
    if (plan_.copies_a) copy_rows(0, rows_.count);
    for_strips([&](auto strip) noexcept {
      if (plan_.copies_b) copy_b(g_, strip.begin, strip.width, b_copy_);
      multiply_blocks(0, rows_.count, strip, b_copy_);
    });
  }

 private:
  void multiply_by_rows() const noexcept {
    if (plan_.copies_b) {
      for_strips([&](auto strip) noexcept {
        copy_b(g_, strip.begin, strip.width, b_copy_ + strip.begin * g_.k);
      });
    }
    for (std::int64_t s = 0; s < rows_.count; ++s) {
      if (plan_.copies_a) copy_rows(s, s + 1);
      for_strips([&](auto strip) noexcept {
        multiply_blocks(s, s + 1, strip, plan_.copies_b ? b_copy_ + strip.begin * g_.k : nullptr);
      });
    }
  }

  void multiply_pairs() const noexcept {
    const std::int64_t registers = g_.n / (Pack<T>::size / 2);
    const std::int64_t strips = ceil_div(registers, 3);
    for (std::int64_t s = 0; s < strips; ++s) {
      const std::int64_t first = part_begin(registers, strips, s);
      const std::int64_t column = first * (Pack<T>::size / 2);
      if (part_begin(registers, strips, s + 1) - first == 3)
        multiply_paired_strip<3>(column);
      else
        multiply_paired_strip<2>(column);
    }
  }

  template <int kPacks>
  void multiply_paired_strip(std::int64_t column) const noexcept {
    constexpr std::int64_t kColumns = detail::kPairedColumns<T, kPacks>;
    const T* b = g_.b + column;
    if (plan_.copies_b) copy_b(g_, column, kColumns, b_copy_);
    detail::GemmBlock<T> block;
    T* const panel = b_copy_ + kColumns * g_.k;
    detail::interleave_rows<T, kPacks>(g_.k, plan_.copies_b ? b_copy_ : b,
                                       plan_.copies_b ? kColumns : g_.ldb, panel);
    block.k = g_.k;
    block.b = panel;
    block.ldb = 0;  // the panel has no gaps
    block.a = g_.a;
    block.a_row = g_.a_row;
    block.a_col = 1;
    const T* init = g_.init == nullptr ? nullptr : g_.init + column;
    block.to = {g_.c + column, g_.ldc, init, g_.init_row, rest_, row_, column};
    for (std::int64_t s = 0; s < rows_.count; ++s) {
      const std::int64_t rows = rows_.rows(s);
      call_paired_block<T, kGemmRows, kPacks>(rows, block);
      block.a += rows * g_.a_row;
      block.to.next_rows(rows);
    }
  }

  template <class F>
  BUROPT_INLINE void for_strips(F&& f) const noexcept {
    for_each_strip<T, detail::kGemmPacks>(g_.n, detail::gemm_packs(rows_.rows(0)), f);
  }

  void copy_rows(std::int64_t first, std::int64_t last) const noexcept {
    for (std::int64_t s = first; s < last; ++s) {
      const std::int64_t i = rows_.first_row(s);
      copy_a(g_, i, rows_.rows(s), a_copy_ + (s - first) * kGemmRows * g_.k);
    }
  }

  // Blocks [begin, end); where A and B are copied, a_copy_ begins with block `begin`, and `panel`
  // holds the strip.
  template <class Strip>
  BUROPT_INLINE void multiply_blocks(std::int64_t begin, std::int64_t end, Strip strip,
                                     const T* panel) const noexcept {
    detail::GemmBlock<T> block;
    block.k = g_.k;
    block.b = plan_.copies_b ? panel : g_.b + strip.begin;
    block.ldb = plan_.copies_b ? strip.width : g_.ldb;
    const std::int64_t i = rows_.first_row(begin);
    block.a = plan_.copies_a ? a_copy_ : g_.a + i * g_.a_row;
    block.a_row = plan_.copies_a ? 1 : g_.a_row;
    block.a_col = plan_.copies_a ? kGemmRows : g_.a_col;
    const T* init = g_.init == nullptr ? nullptr : g_.init + i * g_.init_row + strip.begin;
    T* c = g_.c + i * g_.ldc + strip.begin;
    block.to = {c, g_.ldc, init, g_.init_row, rest_, row_ + i, strip.begin};
    for (std::int64_t s = begin; s < end; ++s) {
      const std::int64_t rows = rows_.rows(s);
      call_block<T, kGemmRows>(rows, block, strip);
      block.a += plan_.copies_a ? kGemmRows * g_.k : rows * g_.a_row;
      block.to.next_rows(rows);
    }
  }

  const Gemm<T>& g_;
  const Plan& plan_;
  const GemmEpilogue<T>* rest_;
  std::int64_t row_;
  RowBlocks rows_;
  T* a_copy_;
  T* b_copy_;
};

}  // namespace

template <class T>
std::int64_t gemm_scratch(std::int64_t m, std::int64_t n, std::int64_t k,
                          bool b_transposed) noexcept {
  if (m == 0 || n == 0) return 0;
  // A smaller product may go the other way, so this is enough for both. Fewer rows take wider
  // panels, so the widest is assumed.
  const Plan plan = make_plan<T>(m, n, k, b_transposed, false);
  const std::int64_t widest = detail::kGemmPacks * Pack<T>::size;
  const std::int64_t panel = plan.copies_b ? std::min(n, widest) : 0;
  // Of pairs a strip of B is copied as it is, and then arranged.
  const std::int64_t pairs =
      sizeof(T) == 4 && n > Pack<T>::size ? 2 * detail::kPairedColumns<T, 3> : 0;
  const std::int64_t depth_of_block = std::min(k, kGemmBlock);
  const std::int64_t by_strips =
      std::max(depth_of_block * (copied_a_rows(plan) + panel), (depth_of_block + 1) * pairs);
  if (n < kByRowsWidth) return by_strips;
  const std::int64_t depth = std::min(k, kByRowsDepth);
  const std::int64_t most = kByRowsBytes / static_cast<std::int64_t>(sizeof(T));
  const std::int64_t panels = plan.copies_b ? std::min(n * depth, most) : 0;
  return std::max(by_strips, depth * kGemmRows + panels);
}

template <class T>
void gemm(const Gemm<T>& g, T* scratch) noexcept {
  if (g.m == 0 || g.n == 0) return;
  if (uses_dots(g)) return gemm_by_dots(g);
  const Plan plan = make_plan<T>(g.m, g.n, g.k, g.b_transposed, goes_by_rows<T>(g.m, g.n, g.k));
  if (g.k <= kGemmBlock && g.m <= plan.row_block) {  // without a copy of g: it takes time
    const GemmEpilogue<T>* rest = g.empty() ? nullptr : &g;
    return BlockProduct<T>(g, plan, rest, 0, scratch).multiply();
  }
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
      BlockProduct<T>(part, plan, rest, i, scratch).multiply();
    }
    p += part.k;
  } while (p < g.k);
}

template std::int64_t gemm_scratch<float>(std::int64_t, std::int64_t, std::int64_t, bool) noexcept;
template std::int64_t gemm_scratch<double>(std::int64_t, std::int64_t, std::int64_t, bool) noexcept;
template void gemm<float>(const Gemm<float>&, float*) noexcept;
template void gemm<double>(const Gemm<double>&, double*) noexcept;

}  // namespace buropt
