#include "ops/matmul_kernels.h"

#include <algorithm>

#include "math/csr.h"
#include "math/finite.h"
#include "math/gemm.h"
#include "math/gemv.h"
#include "math/subnormals.h"
#include "ops/stack.h"

namespace buropt {
namespace {

// Instruction::numbers: m, k, n, transpose_a, transpose_b, and per operand the elements from one
// sample to the next (0 when unbatched); of stacks then what append_stack appends; of one product
// of all rows four flags, its ending.
constexpr std::size_t kStack = 7;
constexpr std::size_t kEnding = 7;

template <class T>
Gemm<T> product(const std::int64_t* n, const T* a, const T* b, T* c, bool accumulate) {
  Gemm<T> g;
  g.m = n[0];
  g.sample_rows = n[0];
  g.k = n[1];
  g.n = n[2];
  g.a = a;
  g.a_row = n[3] != 0 ? 1 : g.k;
  g.a_col = n[3] != 0 ? g.m : 1;
  g.b = b;
  g.b_transposed = n[4] != 0;
  g.ldb = g.b_transposed ? g.k : g.n;
  g.c = c;
  g.ldc = g.n;
  if (accumulate) {
    g.init = c;
    g.init_row = g.n;
  }
  return g;
}

template <class T>
void set_ending(const Instruction& s, const Frame& frame, GemmEpilogue<T>& end) noexcept {
  const std::int64_t* flags = s.numbers.data() + kEnding;
  const std::int64_t columns = s.numbers[2];
  std::size_t next = 2;
  const auto operand = [&](std::int64_t is_given) -> const T* {
    return is_given != 0 ? buffer_as<const T>(frame, s.in[next++]) : nullptr;
  };
  end.bias = operand(flags[0]);
  end.residual = operand(flags[1]);
  end.residual_row = columns;
  end.relu = flags[2] != 0;
  end.mask = operand(flags[3]);
  end.mask_row = columns;
}

/// The share of a call in `count` rows or columns: whole blocks of them, large ones if there are
/// enough for the shares to be even.
struct Share {
  std::int64_t begin, size;

  Share(std::int64_t count, const Frame& frame) noexcept {
    constexpr std::int64_t kLarge = 48;
    constexpr std::int64_t kSmall = 16;
    const std::int64_t block = count < 4 * kLarge * frame.parts ? kSmall : kLarge;
    const std::int64_t blocks = ceil_div(count, block);
    begin = std::min(count, part_begin(blocks, frame.parts, frame.part) * block);
    size = std::min(count, part_begin(blocks, frame.parts, frame.part + 1) * block) - begin;
  }
};

/// A product, or the call's share of it: of its rows if they are many, for then every thread has
/// memory of its own, such as the weights that it multiplies with in the next call; otherwise of
/// whichever are more and may be cut.
template <class T>
void multiply_share(const Gemm<T>& g, const Frame& frame) noexcept {
  auto* const scratch = reinterpret_cast<T*>(frame.scratch);
  if (frame.parts == 1) return gemm(g, scratch);
  constexpr std::int64_t kManyRows = 128;
  const bool by_rows = g.m > g.n || g.m >= kManyRows * frame.parts || uses_pairs(g);
  const Share share(by_rows ? g.m : g.n, frame);
  gemm(by_rows ? block_of(g, share.begin, share.size, 0, g.n)
               : block_of(g, 0, g.m, share.begin, share.size),
       scratch);
}

/// One product for all rows of the tile (or the only one, of unbatched operands).
template <class T>
void stacked_kernel(const Instruction& s, const Frame& frame) noexcept {
  const T* a = buffer_as<const T>(frame, s.in[0]);
  const T* b = buffer_as<const T>(frame, s.in[1]);
  const bool descends = frame.step != 0 && s.step_rows > 0;
  Gemm<T> g = product(s.numbers.data(), a, b, buffer_as<T>(frame, s.out), descends);
  g.m *= s.rows(frame);
  set_ending<T>(s, frame, g);
  if (descends) g.step = static_cast<T>(frame.step);
  multiply_share(g, frame);
}

/// Rows of the first operand, each `width` long; a sample has one if they are picked.
template <class T>
DenseRows<T> dense_rows(const Instruction& s, const Frame& frame, std::int64_t width,
                        std::int64_t rows) noexcept {
  const std::int64_t* picks = frame.picks == nullptr ? nullptr : frame.picks[s.in[0]];
  return {buffer_as<const T>(frame, s.in[0]), width, width, picks, 0, rows};
}

/// The rows of dense_rows without their zeros, if there is such a copy and they may be left out:
/// 0 times a factor that is not finite is not 0.
template <class T>
const CsrRows<T>* sparse_rows(const Instruction& s, const Frame& frame, const T* factors,
                              std::int64_t n) noexcept {
  if (frame.sparse == nullptr || frame.sparse[s.in[0]] == nullptr) return nullptr;
  if (!all_finite(factors, n)) return nullptr;
  return reinterpret_cast<const CsrRows<T>*>(frame.sparse[s.in[0]]);
}

/// Rows of A, each k long, times one vector.
template <class T>
void rows_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* n = s.numbers.data();
  const T* x = buffer_as<const T>(frame, s.in[1]);
  T* z = buffer_as<T>(frame, s.out);
  if (const CsrRows<T>* a = sparse_rows(s, frame, x, n[1])) return csr_dot(*a, x, z);
  gemv(dense_rows<T>(s, frame, n[1], n[0] * s.rows(frame)), x, z);
}

/// A product of its own for every sample.
template <class T>
void samples_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* n = s.numbers.data();
  const T* a = buffer_as<const T>(frame, s.in[0]);
  const T* b = buffer_as<const T>(frame, s.in[1]);
  T* c = buffer_as<T>(frame, s.out);
  for (std::int64_t row = 0; row < frame.rows; ++row) {
    if (n[0] == 1 && n[2] == 1)
      c[row] = dot(a + row * n[5], b + row * n[6], n[1]);
    else
      gemm(product(n, a + row * n[5], b + row * n[6], c + row * n[0] * n[2], false),
           reinterpret_cast<T*>(frame.scratch));
  }
}

/// Sum over the samples of A_s' B_s, with A_s (p, m) and B_s (p, n): one product over all rows.
template <class T>
void stacked_sum_kernel(const Instruction& s, const Frame& frame) noexcept {
  std::array<std::int64_t, 5> n;
  std::copy_n(s.numbers.begin(), n.size(), n.begin());
  n[1] *= frame.rows;
  const T* a = buffer_as<const T>(frame, s.in[0]);
  const T* b = buffer_as<const T>(frame, s.in[1]);
  T* c = buffer_as<T>(frame, s.out);
  if (n[2] == 1) {
    if (const CsrRows<T>* rows = sparse_rows(s, frame, b, n[1])) {
      if (frame.part > 0) return;
      if (!frame.adds) std::fill_n(c, n[0], T(0));
      return csr_scatter(*rows, b, c);
    }
    DenseRows<T> rows = dense_rows<T>(s, frame, n[0], n[1]);
    const Share share(n[0], frame);
    rows.values += share.begin;
    rows.width = share.size;
    gemv_t(rows, b, c + share.begin, frame.adds);
  } else {
    const bool descends = frame.step != 0 && frame.rows <= s.step_rows;
    Gemm<T> g = product(n.data(), a, b, c, frame.adds || descends);
    if (descends) g.step = static_cast<T>(frame.step);
    multiply_share(g, frame);
  }
}

/// Products over all rows, which are most of a network's work. In float32 the cotangents of
/// saturated layers underflow; each such number would slow down a whole row of products.
template <class T, Kernel kernel>
void large(const Instruction& s, const Frame& frame) noexcept {
  if constexpr (std::is_same_v<T, float>) {
    const SubnormalsAreZero while_multiplying;
    kernel(s, frame);
  } else {
    kernel(s, frame);
  }
}

template <class T>
void samples_sum_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* n = s.numbers.data();
  const T* a = buffer_as<const T>(frame, s.in[0]);
  const T* b = buffer_as<const T>(frame, s.in[1]);
  for (std::int64_t row = 0; row < frame.rows; ++row) {
    gemm(product(n, a + row * n[5], b + row * n[6], buffer_as<T>(frame, s.out),
                 frame.adds || row > 0),
         reinterpret_cast<T*>(frame.scratch));
  }
}

// ---- stacks: a product of its own for every matrix of every sample, in order.

template <class T>
void multiply(const std::int64_t* n, const T* a, const T* b, T* c, bool accumulate,
              const Frame& frame) noexcept {
  if (n[0] == 1 && n[2] == 1) {
    const T product = dot(a, b, n[1]);
    *c = accumulate ? *c + product : product;
  } else {
    gemm(product(n, a, b, c, accumulate), reinterpret_cast<T*>(frame.scratch));
  }
}

template <class T>
void stack_kernel(const Instruction& s, const Frame& frame) noexcept {
  for_matrices<T>(s, frame, kStack, [&](const auto& operands, T* c) noexcept {
    multiply(s.numbers.data(), operands[0], operands[1], c, false, frame);
  });
}

/// Calls f(a, b, sample, i) for every matrix i of every sample.
template <class T, class F>
void for_pairs(const Instruction& s, const Frame& frame, std::int64_t rows, F&& f) noexcept {
  const std::int64_t* n = s.numbers.data() + kStack;
  const std::int64_t count = n[0];
  const std::int64_t* a_places = n + 2;
  const std::int64_t* b_places = a_places + 1 + count;
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* a = buffer_as<const T>(frame, s.in[0]) + row * a_places[0];
    const T* b = buffer_as<const T>(frame, s.in[1]) + row * b_places[0];
    for (std::int64_t i = 0; i < count; ++i) f(a + a_places[1 + i], b + b_places[1 + i], row, i);
  }
}

/// The products of a stack summed, for each sample.
template <class T>
void summed_stack_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* n = s.numbers.data();
  const std::int64_t rows = s.rows(frame);
  T* out = buffer_as<T>(frame, s.out);
  if (n[kStack] == 0) std::fill_n(out, rows * n[0] * n[2], T(0));
  for_pairs<T>(s, frame, rows,
               [&](const T* a, const T* b, std::int64_t row, std::int64_t i) noexcept {
                 multiply(n, a, b, out + row * n[0] * n[2], i > 0, frame);
               });
}

/// A stack's products, or their sum, added up over the samples.
template <class T, bool sums_stack>
void samples_stack_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* n = s.numbers.data();
  T* out = buffer_as<T>(frame, s.out);
  if (sums_stack && n[kStack] == 0 && !frame.adds) std::fill_n(out, n[0] * n[2], T(0));
  for_pairs<T>(s, frame, frame.rows,
               [&](const T* a, const T* b, std::int64_t row, std::int64_t i) noexcept {
                 const bool adds = frame.adds || row > 0 || (sums_stack && i > 0);
                 multiply(n, a, b, sums_stack ? out : out + i * n[0] * n[2], adds, frame);
               });
}

template <class T>
void choose_stack(const MatmulForm& form, const LowerContext& c, Instruction& s) {
  s.numbers = {form.m, form.k, form.n, form.transpose_a, form.transpose_b, 0, 0};
  append_stack(c, form.m * form.n, s);
  s.starts_sums = form.sums_samples;
  s.splits = !form.sums_samples && !form.sums_stack;
  if (form.sums_samples)
    s.run = form.sums_stack ? samples_stack_kernel<T, true> : samples_stack_kernel<T, false>;
  else
    s.run = form.sums_stack ? summed_stack_kernel<T> : stack_kernel<T>;
  s.scratch_bytes = gemm_scratch<T>(form.m, form.n, form.k, form.transpose_b) *
                    static_cast<std::int64_t>(sizeof(T));
}

template <class T>
void choose(const MatmulForm& form, const LowerContext& c, Instruction& s) {
  if (c.in[0].shape.rank() > 2 || c.in[1].shape.rank() > 2) return choose_stack<T>(form, c, s);
  bool ta = form.transpose_a;
  bool tb = form.transpose_b;
  const bool sums = form.sums_samples;
  // A vector is its own transpose; take the form whose kernel is best.
  if (form.m == 1 || form.k == 1) ta = sums;
  if (form.n == 1 || form.k == 1) tb = false;
  const bool a_batched = c.in[0].batched;
  const bool b_batched = c.in[1].batched;
  s.numbers = {form.m,
               form.k,
               form.n,
               ta,
               tb,
               a_batched ? form.m * form.k : 0,
               b_batched ? form.k * form.n : 0};
  std::int64_t m = form.m;
  std::int64_t k = form.k;
  s.starts_sums = sums;
  if (sums) {
    const bool stacked = ta && !tb;
    s.splits = stacked;
    if (stacked) k *= c.max_rows;
    if (stacked && form.n > 1) s.step_rows = kGemmBlock / std::max<std::int64_t>(form.k, 1);
    s.run = stacked ? large<T, stacked_sum_kernel<T>> : samples_sum_kernel<T>;
    if (stacked && form.n == 1 && form.k == 1) s.picks = 1;
  } else if (b_batched || (a_batched && ta)) {
    s.run = samples_kernel<T>;
  } else if (form.n == 1 && !ta) {
    s.run = rows_kernel<T>;
    if (form.m == 1) s.picks = 1;
  } else {
    if (a_batched) m *= c.max_rows;
    s.run = large<T, stacked_kernel<T>>;
    s.splits = true;
    const auto [bias, residual, relu, mask] = form.ending;
    const bool is_plain = !bias && !residual && !relu && !mask;
    if (!a_batched && is_plain && k <= kGemmBlock) s.step_rows = 1;
    for (const bool part : {bias, residual, relu, mask}) s.numbers.push_back(part);
  }
  s.scratch_bytes =
      gemm_scratch<T>(m, form.n, k, s.numbers[4] != 0) * static_cast<std::int64_t>(sizeof(T));
}

}  // namespace

void lower_matmul(const MatmulForm& form, const LowerContext& context, Instruction& instruction) {
  if (context.out.dtype == DType::float32)
    choose<float>(form, context, instruction);
  else
    choose<double>(form, context, instruction);
}

}  // namespace buropt
