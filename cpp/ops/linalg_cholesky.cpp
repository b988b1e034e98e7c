// cholesky, and the two primitives of its derivative: solve_triangular and lower_triangle.
//
// As in NumPy cholesky reads the lower triangle of its operand alone, so that is where its gradient
// lies. A matrix that is not positive definite gives NaN where NumPy raises.
#include "math/cholesky.h"

#include <algorithm>

#include "math/triangular.h"
#include "ops/families.h"
#include "ops/stack.h"

namespace buropt {
namespace {

bool flag(const Attributes& attributes) { return !attributes[0].empty() && attributes[0][0] != 0; }

NodeId solve_triangular(Emitter& e, NodeId l, NodeId b, bool transpose) {
  return e.emit("solve_triangular", {l, b}, Attributes({transpose}));
}

NodeId lower_triangle(Emitter& e, NodeId x, bool half) {
  return e.emit("lower_triangle", {x}, Attributes({half}));
}

NodeId plus_transpose(Emitter& e, NodeId x) { return e.emit("add", {x, transpose_matrices(e, x)}); }

// ---- lower_triangle(x) {"half"}: zeros above the diagonal; the diagonal itself whole or halved.
// Its own transpose.

template <class T>
void lower_triangle_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t rows = s.numbers[0];
  const std::int64_t columns = s.numbers[1];
  const T on_diagonal = s.numbers[2] != 0 ? T(0.5) : T(1);
  for_matrices<T>(s, frame, 3, [=](const auto& in, T* out) {
    std::fill_n(out, rows * columns, T(0));
    for (std::int64_t i = 0; i < rows; ++i) {
      const std::int64_t row = i * columns;
      std::copy_n(in[0] + row, std::min(i, columns), out + row);
      if (i < columns) out[row + i] = on_diagonal * in[0][row + i];
    }
  });
}

Op lower_triangle_op() {
  Op op;
  op.name = "lower_triangle";
  op.doc = "Lower triangle of a matrix, with its diagonal or half of it.";
  op.attributes = {"half"};
  op.derived = true;
  op.infer = [](std::span<const Type> in, const Attributes&) {
    matrix_size("lower_triangle", in[0]);
    return in[0];
  };
  op.linearity = Linearity::jointly;
  op.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) {
    cotangents[0] = lower_triangle(e, cotangent, flag(node.attributes));
  };
  op.lower = [](const LowerContext& c, Instruction& s) {
    const MatrixSize size = matrix_size("lower_triangle", c.in[0]);
    s.numbers = {size.rows, size.columns, flag(c.attributes)};
    append_stack(c, size.size(), s);
    s.run = c.out.dtype == DType::float32 ? lower_triangle_kernel<float>
                                          : lower_triangle_kernel<double>;
  };
  return op;
}

// ---- solve_triangular(l, b) {"transpose"}: l^-1 b or l^-T b, of the lower triangles of l.

Type infer_triangular(std::span<const Type> in, const Attributes&) {
  const std::int64_t n = square_size("solve_triangular", in[0]);
  const MatrixSize b = matrix_size("solve_triangular", in[1]);
  if (b.rows != n) {
    raise(ErrorKind::value, "buropt.solve_triangular: sizes differ: l is %s, b is %s",
          in[0].shape.str().c_str(), in[1].shape.str().c_str());
  }
  Type out = in[0];
  out.batched = in[0].batched || in[1].batched;
  out.shape = with_axes(broadcast_leading_axes("solve_triangular", in), {n, b.columns});
  return out;
}

void reverse_triangular(Emitter& e, const NodeView& node, NodeId cotangent,
                        std::span<NodeId> cotangents) {
  const bool transposed = flag(node.attributes);
  const NodeId l = node.inputs[0];
  const NodeId x = node.id;
  const NodeId back = solve_triangular(e, l, cotangent, !transposed);
  const NodeId product = transposed ? product_for(e, l, e.emit("negative", {x}), back, false, true)
                                    : product_for(e, l, e.emit("negative", {back}), x, false, true);
  cotangents[0] = lower_triangle(e, product, false);
  cotangents[1] = sum_to_shape(e, back, e.type(node.inputs[1]).shape);
}

NodeId forward_triangular(Emitter& e, const NodeView& node, std::span<const NodeId> tangents) {
  const bool transposed = flag(node.attributes);
  NodeId change = tangents[1];
  if (tangents[0] != kNone) {
    const NodeId l = lower_triangle(e, tangents[0], false);
    const NodeId product =
        e.emit("negative", {multiply_matrices(e, l, node.id, transposed, false)});
    change = change == kNone ? product : e.emit("add", {change, product});
  }
  return change == kNone ? kNone : solve_triangular(e, node.inputs[0], change, transposed);
}

template <class T>
void triangular_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[0];
  const std::int64_t k = s.numbers[1];
  const bool transposed = s.numbers[2] != 0;
  for_matrices<T>(s, frame, 3, [=](const auto& in, T* out) {
    const Triangle<T> l{in[0], n};
    std::copy_n(in[1], n * k, out);
    if (transposed)
      solve_lower_transposed(l, out, k);
    else
      solve_lower(l, out, k);
  });
}

Op solve_triangular_op() {
  Op op;
  op.name = "solve_triangular";
  op.doc = "The solution x of l x = b, where l is a lower triangle.";
  op.arity = 2;
  op.attributes = {"transpose"};
  op.derived = true;
  op.infer = infer_triangular;
  op.reverse = reverse_triangular;
  op.forward = forward_triangular;
  op.lower = [](const LowerContext& c, Instruction& s) {
    const MatrixSize b = matrix_size("solve_triangular", c.in[1]);
    s.numbers = {b.rows, b.columns, flag(c.attributes)};
    append_stack(c, b.size(), s);
    s.run = c.out.dtype == DType::float32 ? triangular_kernel<float> : triangular_kernel<double>;
  };
  return op;
}

// ---- cholesky(a): l with l l^T = a.

Type infer_cholesky(std::span<const Type> in, const Attributes&) {
  square_size("cholesky", in[0]);
  return in[0];
}

/// With p the lower triangle of l^T g, its diagonal halved, and s = l^-T p l^-1, the cotangent of a
/// symmetric operand is (s + s^T) / 2. Its upper half comes from elements that are not read: they
/// stand for those below.
void reverse_cholesky(Emitter& e, const NodeView& node, NodeId cotangent,
                      std::span<NodeId> cotangents) {
  const NodeId l = node.id;
  const NodeId p = lower_triangle(e, multiply_matrices(e, l, cotangent, true, false), true);
  const NodeId half = solve_triangular(e, l, p, true);
  const NodeId s = solve_triangular(e, l, transpose_matrices(e, half), true);
  cotangents[0] = without_dead(e, node, cotangent, lower_triangle(e, plus_transpose(e, s), true));
}

NodeId forward_cholesky(Emitter& e, const NodeView& node, std::span<const NodeId> tangents) {
  if (tangents[0] == kNone) return kNone;
  const NodeId l = node.id;
  const NodeId change = plus_transpose(e, lower_triangle(e, tangents[0], true));
  const NodeId half = solve_triangular(e, l, change, false);
  const NodeId inner = solve_triangular(e, l, transpose_matrices(e, half), false);
  return multiply_matrices(e, l, lower_triangle(e, inner, true), false, false);
}

template <class T>
void cholesky_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[0];
  for_matrices<T>(s, frame, 1, [n](const auto& in, T* out) { cholesky(in[0], n, out); });
}

Op cholesky_op() {
  Op op;
  op.name = "cholesky";
  op.doc = "Lower triangle l with l l^T = a, of a positive definite matrix.";
  op.infer = infer_cholesky;
  op.reverse = reverse_cholesky;
  op.forward = forward_cholesky;
  op.lower = [](const LowerContext& c, Instruction& s) {
    const std::int64_t n = square_size("cholesky", c.in[0]);
    s.numbers = {n};
    append_stack(c, n * n, s);
    s.run = c.out.dtype == DType::float32 ? cholesky_kernel<float> : cholesky_kernel<double>;
  };
  return op;
}

}  // namespace

std::vector<Op> linalg_cholesky_ops() {
  return {cholesky_op(), solve_triangular_op(), lower_triangle_op()};
}

}  // namespace buropt
