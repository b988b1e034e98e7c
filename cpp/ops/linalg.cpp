// lu, and what is computed from it: solve, inv, det, logabsdet, sign_det.
//
// The last ones take a matrix *and* its factors: solve(a, lu(a), b). As functions they depend on a
// alone; the factors are one node, found once and shared by the value, its derivatives and whatever
// else is asked of the same matrix, and no derivative passes through them. A singular matrix gives
// NaN where NumPy raises.
#include "math/lu.h"

#include <algorithm>

#include "ops/families.h"
#include "ops/stack.h"

namespace buropt {
namespace {

bool is_transposed(const Attributes& attributes) {
  return !attributes[0].empty() && attributes[0][0] != 0;
}

Attributes transposed(bool yes) { return Attributes({yes}); }

NodeId negative(Emitter& e, NodeId x) { return e.emit("negative", {x}); }

/// a + b, where kNone is 0.
NodeId plus(Emitter& e, NodeId a, NodeId b) {
  if (a == kNone || b == kNone) return a == kNone ? b : a;
  return e.emit("add", {a, b});
}

void stop(Emitter&, const NodeView&, NodeId, std::span<NodeId>) {}
NodeId no_tangent(Emitter&, const NodeView&, std::span<const NodeId>) { return kNone; }

// ---- lu: factors (..., n + 1, n) of matrices (..., n, n), laid out as in math/lu.h.

Type infer_lu(std::span<const Type> in, const Attributes&) {
  const std::int64_t n = square_size("lu", in[0]);
  Type out = in[0];
  out.shape = with_axes(leading_axes(in[0]), {n + 1, n});
  return out;
}

template <class T>
void lu_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[0];
  for_matrices<T>(s, frame, 1, [n](const auto& in, T* out) {
    std::copy_n(in[0], n * n, out);
    Lu<T>(out, n).factor();
  });
}

Op lu_op() {
  Op op;
  op.name = "lu";
  op.doc = "Factors with partial pivoting; no derivative passes through them.";
  op.derived = true;
  op.infer = infer_lu;
  op.reverse = stop;
  op.forward = no_tangent;
  op.lower = [](const LowerContext& c, Instruction& s) {
    const std::int64_t n = square_size("lu", c.in[0]);
    s.numbers = {n};
    append_stack(c, (n + 1) * n, s);
    s.run = c.out.dtype == DType::float32 ? lu_kernel<float> : lu_kernel<double>;
  };
  return op;
}

/// Checks that the second operand can be the factors of the first; their number of rows.
std::int64_t check_factors(std::string_view op, std::span<const Type> in) {
  const std::int64_t n = square_size(op, in[0]);
  if (!(infer_lu(in.first(1), {}).shape == in[1].shape) || in[0].batched != in[1].batched) {
    raise(ErrorKind::value, "buropt.%s: an array of shape %s is not the factors of one of shape %s",
          std::string(op).c_str(), in[1].shape.str().c_str(), in[0].shape.str().c_str());
  }
  return n;
}

// ---- solve(a, lu, b) {"transpose"}: a^-1 b or a^-T b of matrices a (..., n, n), b (..., n, k).

Type infer_solve(std::span<const Type> in, const Attributes&) {
  const std::int64_t n = check_factors("solve", in);
  const MatrixSize b = matrix_size("solve", in[2]);
  if (b.rows != n) {
    raise(ErrorKind::value, "buropt.solve: sizes differ: a is %s, b is %s",
          in[0].shape.str().c_str(), in[2].shape.str().c_str());
  }
  Type out = in[0];
  out.batched = in[0].batched || in[2].batched;
  const std::array<Type, 2> stacks{in[0], in[2]};
  out.shape = with_axes(broadcast_leading_axes("solve", stacks), {n, b.columns});
  return out;
}

/// With x = a^-1 b: d b = a^-T g and d a = -(a^-T g) x^T.
void reverse_solve(Emitter& e, const NodeView& node, NodeId cotangent,
                   std::span<NodeId> cotangents) {
  const NodeId a = node.inputs[0];
  const bool transpose = is_transposed(node.attributes);
  const NodeId found = e.emit("solve", {a, node.inputs[1], cotangent}, transposed(!transpose));
  const NodeId back = without_dead(e, node, cotangent, found);
  const NodeId x = without_dead(e, node, cotangent, node.id);
  cotangents[0] = transpose ? product_for(e, a, negative(e, x), back, false, true)
                            : product_for(e, a, negative(e, back), x, false, true);
  cotangents[2] = sum_to_shape(e, back, e.type(node.inputs[2]).shape);
}

NodeId forward_solve(Emitter& e, const NodeView& node, std::span<const NodeId> tangents) {
  NodeId change = tangents[2];
  if (tangents[0] != kNone) {
    const bool transpose = is_transposed(node.attributes);
    change =
        plus(e, change, negative(e, multiply_matrices(e, tangents[0], node.id, transpose, false)));
  }
  if (change == kNone) return kNone;
  return e.emit("solve", {node.inputs[0], node.inputs[1], change}, node.attributes);
}

template <class T>
void solve_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[0];
  const std::int64_t k = s.numbers[1];
  const bool transpose = s.numbers[2] != 0;
  for_matrices<T>(s, frame, 3, [=](const auto& in, T* out) {
    std::copy_n(in[2], n * k, out);
    Factors<T>(in[1], n).solve(out, k, transpose);
  });
}

Op solve_op() {
  Op op;
  op.name = "solve";
  op.doc = "The solution x of a x = b.";
  op.arity = 3;
  op.attributes = {"transpose"};
  op.infer = infer_solve;
  op.reverse = reverse_solve;
  op.forward = forward_solve;
  op.lower = [](const LowerContext& c, Instruction& s) {
    const MatrixSize b = matrix_size("solve", c.in[2]);
    s.numbers = {b.rows, b.columns, is_transposed(c.attributes)};
    append_stack(c, b.size(), s);
    s.run = c.out.dtype == DType::float32 ? solve_kernel<float> : solve_kernel<double>;
  };
  return op;
}

// ---- inv(a, lu) {"transpose"}: a^-1 or a^-T.

Type infer_inv(std::span<const Type> in, const Attributes&) {
  check_factors("inv", in);
  return in[0];
}

/// With x = a^-1: d a = -x^T g x^T; with x = a^-T: d a = -x g^T x.
void reverse_inv(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  const bool transpose = is_transposed(node.attributes);
  const NodeId left = multiply_matrices(e, negative(e, node.id), cotangent, !transpose, transpose);
  const NodeId product = multiply_matrices(e, left, node.id, false, !transpose);
  cotangents[0] = without_dead(e, node, cotangent, product);
}

NodeId forward_inv(Emitter& e, const NodeView& node, std::span<const NodeId> tangents) {
  if (tangents[0] == kNone) return kNone;
  const bool transpose = is_transposed(node.attributes);
  const NodeId left = multiply_matrices(e, negative(e, node.id), tangents[0], false, transpose);
  return multiply_matrices(e, left, node.id, false, false);
}

template <class T>
void inv_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[0];
  const bool transpose = s.numbers[1] != 0;
  for_matrices<T>(s, frame, 2, [=](const auto& in, T* out) {
    std::fill_n(out, n * n, T(0));
    for (std::int64_t i = 0; i < n; ++i) out[i * n + i] = T(1);
    Factors<T>(in[1], n).solve(out, n, transpose);
  });
}

Op inv_op() {
  Op op;
  op.name = "inv";
  op.doc = "Inverse of a matrix.";
  op.arity = 2;
  op.attributes = {"transpose"};
  op.infer = infer_inv;
  op.reverse = reverse_inv;
  op.forward = forward_inv;
  op.lower = [](const LowerContext& c, Instruction& s) {
    const std::int64_t n = square_size("inv", c.in[0]);
    s.numbers = {n, is_transposed(c.attributes)};
    append_stack(c, n * n, s);
    s.run = c.out.dtype == DType::float32 ? inv_kernel<float> : inv_kernel<double>;
  };
  return op;
}

// ---- det(a, lu), logabsdet(a, lu), sign_det(lu): a number (...,) for each matrix.

Type infer_number(std::span<const Type> in, const Attributes&) {
  if (in.size() == 2) {
    check_factors("det", in);
  } else if (const MatrixSize lu = matrix_size("sign_det", in[0]); lu.rows != lu.columns + 1) {
    raise(ErrorKind::value, "buropt.sign_det: an array of shape %s holds no factors",
          in[0].shape.str().c_str());
  }
  Type out = in[0];
  out.shape = leading_axes(in[0]);
  return out;
}

/// The gradient of the determinant is the cofactor matrix.
void reverse_det(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  const NodeId slope = e.emit("cofactor", {node.inputs[0]});
  const NodeId factor = as_one_by_one(e, cotangent);
  cotangents[0] = without_dead(e, node, factor, e.emit("multiply", {factor, slope}));
}

/// That of log |det a| is a^-T.
void reverse_logabsdet(Emitter& e, const NodeView& node, NodeId cotangent,
                       std::span<NodeId> cotangents) {
  const NodeId slope = e.emit("inv", {node.inputs[0], node.inputs[1]}, transposed(true));
  const NodeId factor = as_one_by_one(e, cotangent);
  cotangents[0] = without_dead(e, node, factor, e.emit("multiply", {factor, slope}));
}

/// What Factors tells as one number.
template <class T, T (Factors<T>::*number)() const noexcept>
void number_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[0];
  const std::size_t lu = s.in.size() - 1;
  for_matrices<T>(s, frame, 1,
                  [=](const auto& in, T* out) { *out = (Factors<T>(in[lu], n).*number)(); });
}

void lower_number(const LowerContext& c, Instruction& s, Kernel f32, Kernel f64) {
  s.numbers = {matrix_size("det", c.in.back()).columns};
  append_stack(c, 1, s);
  s.run = c.out.dtype == DType::float32 ? f32 : f64;
}

Op det_op() {
  Op op;
  op.name = "det";
  op.doc = "Determinant of a matrix.";
  op.arity = 2;
  op.infer = infer_number;
  op.reverse = reverse_det;
  op.lower = [](const LowerContext& c, Instruction& s) {
    lower_number(c, s, number_kernel<float, &Factors<float>::determinant>,
                 number_kernel<double, &Factors<double>::determinant>);
  };
  return op;
}

Op logabsdet_op() {
  Op op = det_op();
  op.name = "logabsdet";
  op.doc = "Logarithm of the determinant's magnitude.";
  op.reverse = reverse_logabsdet;
  op.lower = [](const LowerContext& c, Instruction& s) {
    lower_number(c, s, number_kernel<float, &Factors<float>::log_determinant>,
                 number_kernel<double, &Factors<double>::log_determinant>);
  };
  return op;
}

Op sign_det_op() {
  Op op;
  op.name = "sign_det";
  op.doc = "Sign of the determinant, by its factors; its derivative is 0.";
  op.infer = infer_number;
  op.reverse = stop;
  op.forward = no_tangent;
  op.lower = [](const LowerContext& c, Instruction& s) {
    lower_number(c, s, number_kernel<float, &Factors<float>::sign>,
                 number_kernel<double, &Factors<double>::sign>);
  };
  return op;
}

}  // namespace

std::vector<Op> linalg_ops() {
  return {lu_op(), solve_op(), inv_op(), det_op(), logabsdet_op(), sign_det_op()};
}

}  // namespace buropt
