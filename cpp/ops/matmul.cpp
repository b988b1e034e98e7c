// matmul {"transpose_a"}, {"transpose_b"} and matmul_batch_sum, the same summed over the samples.
//
// The primitive itself is a product of matrices op(A) (m, k) op(B) (k, n); vectors are given an
// axis of length 1 by simplify. A batched row times an unbatched matrix is one tall product over
// all rows of a tile, and the cotangent of the matrix is one product that adds straight into the
// accumulator.
#include <algorithm>

#include "math/gemm.h"
#include "math/gemv.h"
#include "math/reduce.h"
#include "ops/families.h"

namespace buropt {
namespace {

bool flag(const Attributes& attributes, int list) {
  return !attributes[list].empty() && attributes[list][0] != 0;
}

Attributes flags(bool transpose_a, bool transpose_b) {
  return Attributes({transpose_a}, {transpose_b});
}

struct Sizes {
  std::int64_t m, k, n;
};

/// Sizes of the product; raises when the inner ones differ.
Sizes sizes_of(std::span<const Type> in, const Attributes& attributes) {
  const bool ta = flag(attributes, 0);
  const bool tb = flag(attributes, 1);
  const Shape& a = in[0].shape;
  const Shape& b = in[1].shape;
  if (a.rank() != 2 || b.rank() != 2 || a[ta ? 0 : 1] != b[tb ? 1 : 0]) {
    raise(ErrorKind::value, "buropt.matmul: inner sizes differ: a is %s, b is %s", a.str().c_str(),
          b.str().c_str());
  }
  return {a[ta ? 1 : 0], a[ta ? 0 : 1], b[tb ? 0 : 1]};
}

Type infer(std::span<const Type> in, const Attributes& attributes) {
  const Sizes s = sizes_of(in, attributes);
  Type out = in[0];
  out.batched = in[0].batched || in[1].batched;
  out.shape = Shape{s.m, s.n};
  return out;
}

NodeId reshape(Emitter& e, NodeId node, std::initializer_list<std::int64_t> shape) {
  return e.emit("reshape", {node}, Attributes(shape));
}

/// NumPy's rule for vectors; sparse rows go to sparse_dot.
NodeId simplify_operands(Emitter& e, NodeId a, NodeId b) {
  const Type ta = e.type(a);
  const Type tb = e.type(b);
  if (ta.csr) return e.emit("sparse_dot", {a, b});
  if (tb.csr) {
    if (ta.shape.rank() == 1) return e.emit("sparse_dot", {b, a});
    return e.emit("sparse_dot", {b, e.emit("transpose", {a}, Attributes({1, 0}))});
  }
  const int ra = ta.shape.rank();
  const int rb = tb.shape.rank();
  const Shape& sa = ta.shape;
  const Shape& sb = tb.shape;
  if (ra < 1 || rb < 1 || ra > 2 || rb > 2 || sa[ra - 1] != sb[0]) {
    raise(ErrorKind::value, "buropt.matmul: inner sizes differ: a is %s, b is %s%s",
          sa.str().c_str(), sb.str().c_str(),
          ra > 2 || rb > 2                 ? "; arrays of more than 2 axes are not supported"
          : ra < 1 || rb < 1               ? "; scalars multiply with *"
          : rb == 2 && sa[ra - 1] == sb[1] ? "; did you mean a @ b.T?"
                                           : "");
  }
  if (ra == 2 && rb == 2) return kNone;
  const NodeId left = ra == 2 ? a : reshape(e, a, {1, sa[0]});
  const NodeId right = rb == 2 ? b : reshape(e, b, {sb[0], 1});
  const NodeId product = e.emit("matmul", {left, right}, flags(false, false));
  std::vector<std::int64_t> shape;
  if (ra == 2) shape.push_back(sa[0]);
  if (rb == 2) shape.push_back(sb[1]);
  return e.emit("reshape", {product}, Attributes(shape));
}

NodeId simplify(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  static const OpId transpose = find_op("transpose");
  const bool ta = flag(attributes, 0);
  const bool tb = flag(attributes, 1);
  if (!ta && !tb) {
    const NodeId found = simplify_operands(e, inputs[0], inputs[1]);
    if (found != kNone) return found;
  }
  // A transposed operand is read in place.
  const auto is_transposed = [&](NodeId node) { return e.definition(node).op == transpose; };
  if (is_transposed(inputs[0]) || is_transposed(inputs[1])) {
    const bool a = is_transposed(inputs[0]);
    const bool b = is_transposed(inputs[1]);
    return e.emit("matmul",
                  {a ? e.definition(inputs[0]).inputs[0] : inputs[0],
                   b ? e.definition(inputs[1]).inputs[0] : inputs[1]},
                  flags(ta != a, tb != b));
  }
  // W x_s for every sample s is one product of the rows x_s' with W'.
  const std::array<Type, 2> in{e.type(inputs[0]), e.type(inputs[1])};
  const Sizes s = sizes_of(in, attributes);
  if (!in[0].batched && in[1].batched && s.n == 1) {
    const NodeId rows = reshape(e, inputs[1], {1, s.k});
    const NodeId product = e.emit("matmul", {rows, inputs[0]}, flags(false, !ta));
    return reshape(e, product, {s.m, 1});
  }
  // A number times a vector. (Batched, it stays a product, whose sum over the samples is one
  // kernel.)
  if (!in[0].batched && !in[1].batched && s.k == 1 && (s.m == 1 || s.n == 1)) {
    const NodeId left = reshape(e, inputs[0], {s.m, 1});
    const NodeId right = reshape(e, inputs[1], {1, s.n});
    return e.emit("multiply", {left, right});
  }
  return kNone;
}

void reverse(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  const NodeId a = node.inputs[0];
  const NodeId b = node.inputs[1];
  const bool ta = flag(node.attributes, 0);
  const bool tb = flag(node.attributes, 1);
  cotangents[0] = ta ? e.emit("matmul", {b, cotangent}, flags(tb, true))
                     : e.emit("matmul", {cotangent, b}, flags(false, !tb));
  cotangents[1] = tb ? e.emit("matmul", {cotangent, a}, flags(true, ta))
                     : e.emit("matmul", {a, cotangent}, flags(!ta, false));
}

NodeId sum_over_batch(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  if (!e.type(inputs[0]).batched || !e.type(inputs[1]).batched) return kNone;
  return e.emit(find_op("matmul_batch_sum"), inputs, attributes);
}

// ---- kernels. numbers: m, k, n, transpose_a, transpose_b, and per operand the elements from one
// sample to the next (0 when unbatched).

template <class T>
Gemm<T> product(const std::int64_t* n, const T* a, const T* b, T* c, bool accumulate) {
  Gemm<T> g;
  g.m = n[0];
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

/// One product for all rows of the tile (or the only one, of unbatched operands).
template <class T>
void stacked_kernel(const Instruction& s, const Frame& frame) noexcept {
  std::array<std::int64_t, 5> n;
  std::copy_n(s.numbers.begin(), n.size(), n.begin());
  n[0] *= s.rows(frame);
  const T* a = buffer_as<const T>(frame, s.in[0]);
  const T* b = buffer_as<const T>(frame, s.in[1]);
  T* c = buffer_as<T>(frame, s.out);
  gemm(product(n.data(), a, b, c, false), reinterpret_cast<T*>(frame.scratch));
}

/// Rows of A, each k long and contiguous, times one vector.
template <class T>
void rows_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* n = s.numbers.data();
  const std::int64_t rows = n[0] * s.rows(frame);
  const DenseRows<T> a{buffer_as<const T>(frame, s.in[0]), n[1], n[1], nullptr, 0, rows};
  gemv(a, buffer_as<const T>(frame, s.in[1]), buffer_as<T>(frame, s.out));
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
  if (n[2] == 1)
    gemv_t(DenseRows<T>{a, n[0], n[0], nullptr, 0, n[1]}, b, c);
  else
    gemm(product(n.data(), a, b, c, true), reinterpret_cast<T*>(frame.scratch));
}

template <class T>
void samples_sum_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* n = s.numbers.data();
  const T* a = buffer_as<const T>(frame, s.in[0]);
  const T* b = buffer_as<const T>(frame, s.in[1]);
  for (std::int64_t row = 0; row < frame.rows; ++row) {
    gemm(product(n, a + row * n[5], b + row * n[6], buffer_as<T>(frame, s.out), true),
         reinterpret_cast<T*>(frame.scratch));
  }
}

template <class T>
void choose(const LowerContext& c, Instruction& s, bool sums) {
  const Sizes z = sizes_of(c.in, c.attributes);
  bool ta = flag(c.attributes, 0);
  bool tb = flag(c.attributes, 1);
  // A vector is its own transpose; take the form whose kernel is best.
  if (z.m == 1 || z.k == 1) ta = sums;
  if (z.n == 1 || z.k == 1) tb = false;
  const bool a_batched = c.in[0].batched;
  const bool b_batched = c.in[1].batched;
  s.numbers = {z.m, z.k, z.n, ta, tb, a_batched ? z.m * z.k : 0, b_batched ? z.k * z.n : 0};
  std::int64_t m = z.m;
  std::int64_t k = z.k;
  if (sums) {
    const bool stacked = ta && !tb;
    if (stacked) k *= c.max_rows;
    s.run = stacked ? stacked_sum_kernel<T> : samples_sum_kernel<T>;
  } else if (b_batched || (a_batched && ta)) {
    s.run = samples_kernel<T>;
  } else if (z.n == 1 && !ta) {
    s.run = rows_kernel<T>;
  } else {
    if (a_batched) m *= c.max_rows;
    s.run = stacked_kernel<T>;
  }
  s.scratch_bytes =
      gemm_scratch<T>(m, z.n, k, s.numbers[4] != 0) * static_cast<std::int64_t>(sizeof(T));
}

template <bool sums>
void lower(const LowerContext& c, Instruction& s) {
  if (c.out.dtype == DType::float32)
    choose<float>(c, s, sums);
  else
    choose<double>(c, s, sums);
}

void elements(ElementEmitter& e) {
  const std::array<Type, 2> in{e.in_type(0), e.in_type(1)};
  const Sizes z = sizes_of(in, e.attributes());
  const bool ta = flag(e.attributes(), 0);
  const bool tb = flag(e.attributes(), 1);
  for (std::int64_t i = 0; i < z.m; ++i) {
    for (std::int64_t j = 0; j < z.n; ++j) {
      std::int32_t total = e.zero();
      for (std::int64_t p = 0; p < z.k; ++p) {
        const std::int32_t a = e.in(0, ta ? p * z.m + i : i * z.k + p);
        const std::int32_t b = e.in(1, tb ? j * z.k + p : p * z.n + j);
        total = e.emit("add", {total, e.emit("multiply", {a, b})});
      }
      e.out(i * z.n + j, total);
    }
  }
}

}  // namespace

std::vector<Op> matmul_ops() {
  Op matmul;
  matmul.name = "matmul";
  matmul.doc = "Product of matrices and vectors, a @ b.";
  matmul.arity = 2;
  matmul.attributes = {"transpose_a", "transpose_b"};
  matmul.simplify = simplify;
  matmul.infer = infer;
  matmul.linearity = Linearity::each;
  matmul.reverse = reverse;
  matmul.batch_sum = sum_over_batch;
  matmul.lower = lower<false>;
  matmul.elements = elements;

  Op sum = matmul;
  sum.name = "matmul_batch_sum";
  sum.doc = "Product of batched matrices, summed over the samples.";
  sum.derived = true;
  sum.batching = Batching::reduces;
  sum.simplify = nullptr;
  sum.batch_sum = nullptr;
  sum.infer = [](std::span<const Type> in, const Attributes& attributes) {
    Type out = infer(in, attributes);
    out.batched = false;
    return out;
  };
  sum.lower = lower<true>;
  sum.elements = nullptr;
  return {matmul, sum};
}

}  // namespace buropt
