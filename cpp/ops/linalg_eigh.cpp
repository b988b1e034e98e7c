// eigh, and what is read from it: eigvalsh(a, eigh(a)) and eigvecsh(a, eigh(a)).
//
// As with lu (linalg.cpp) the decomposition is one node that no derivative passes through. The
// derivative of the eigenvalues is finite for any matrix; that of the eigenvectors divides by
// differences of eigenvalues and is not where two are equal, and so are the second derivatives of
// both. Only the lower triangle of a is read, which is where its gradient lies.
#include "math/eigh.h"

#include <algorithm>

#include "ops/families.h"
#include "ops/stack.h"

namespace buropt {
namespace {

NodeId reshape(Emitter& e, NodeId x, const Shape& shape) {
  return e.emit("reshape", {x}, Attributes({shape.begin(), shape.end()}));
}

/// What a symmetric cotangent is by the elements that are read.
NodeId to_lower_triangle(Emitter& e, NodeId s) {
  return e.emit("lower_triangle", {e.emit("add", {s, transpose_matrices(e, s)})}, Attributes({1}));
}

/// The identity matrix: of ones, the lower triangle less that with half of the diagonal, twice.
NodeId identity(Emitter& e, std::int64_t n, DType dtype) {
  const NodeId ones = e.emit("broadcast_to", {e.constant(1, dtype)}, Attributes({n, n}));
  const NodeId lower = e.emit("lower_triangle", {ones}, Attributes({0}));
  const NodeId halved = e.emit("lower_triangle", {ones}, Attributes({1}));
  return e.emit("multiply", {e.constant(2, dtype), e.emit("subtract", {lower, halved})});
}

// ---- eigh: (..., n + 1, n): the eigenvalues, then the eigenvectors in columns.

Type infer_eigh(std::span<const Type> in, const Attributes&) {
  const std::int64_t n = square_size("eigh", in[0]);
  Type out = in[0];
  out.shape = with_axes(leading_axes(in[0]), {n + 1, n});
  return out;
}

template <class T>
void eigh_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[0];
  auto* order = reinterpret_cast<std::int64_t*>(frame.scratch);
  T* scratch = reinterpret_cast<T*>(order + n);
  for_matrices<T>(s, frame, 1,
                  [=](const auto& in, T* out) { eigh(in[0], n, out, out + n, scratch, order); });
}

Op eigh_op() {
  Op op;
  op.name = "eigh";
  op.doc = "Eigenvalues and eigenvectors; no derivative passes through them.";
  op.derived = true;
  op.infer = infer_eigh;
  op.reverse = [](Emitter&, const NodeView&, NodeId, std::span<NodeId>) {};
  op.forward = [](Emitter&, const NodeView&, std::span<const NodeId>) { return kNone; };
  op.lower = [](const LowerContext& c, Instruction& s) {
    const std::int64_t n = square_size("eigh", c.in[0]);
    s.numbers = {n};
    append_stack(c, (n + 1) * n, s);
    s.run = c.out.dtype == DType::float32 ? eigh_kernel<float> : eigh_kernel<double>;
    s.scratch_bytes =
        n * static_cast<std::int64_t>(sizeof(std::int64_t)) + 2 * n * n * size_of(c.out.dtype);
  };
  return op;
}

void check_decomposition(std::string_view op, std::span<const Type> in) {
  if (infer_eigh(in.first(1), {}).shape == in[1].shape && in[0].batched == in[1].batched) return;
  raise(ErrorKind::value, "buropt.%s: an array of shape %s is no decomposition of one of shape %s",
        std::string(op).c_str(), in[1].shape.str().c_str(), in[0].shape.str().c_str());
}

/// Copies a part of the decomposition: numbers are n, its place and its size.
template <class T>
void part_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t begin = s.numbers[0];
  const std::int64_t size = s.numbers[1];
  for_matrices<T>(s, frame, 2,
                  [=](const auto& in, T* out) { std::copy_n(in[1] + begin, size, out); });
}

void lower_part(const LowerContext& c, std::int64_t begin, std::int64_t size, Instruction& s) {
  s.numbers = {begin, size};
  append_stack(c, size, s);
  s.run = c.out.dtype == DType::float32 ? part_kernel<float> : part_kernel<double>;
}

// ---- eigvalsh(a, eigh): w (..., n). d a = v diag(g) v^T.

Type infer_eigvalsh(std::span<const Type> in, const Attributes&) {
  check_decomposition("eigvalsh", in);
  Type out = in[0];
  out.shape = with_axes(leading_axes(in[0]), {square_size("eigvalsh", in[0])});
  return out;
}

void reverse_eigvalsh(Emitter& e, const NodeView& node, NodeId cotangent,
                      std::span<NodeId> cotangents) {
  const Type a = e.type(node.inputs[0]);
  const std::int64_t n = square_size("eigvalsh", a);
  const NodeId v = e.emit("eigvecsh", {node.inputs[0], node.inputs[1]});
  const NodeId row = reshape(e, cotangent, with_axes(leading_axes(a), {1, n}));
  const NodeId s = multiply_matrices(e, e.emit("multiply", {v, row}), v, false, true);
  cotangents[0] = without_dead(e, node, row, to_lower_triangle(e, s));
}

Op eigvalsh_op() {
  Op op;
  op.name = "eigvalsh";
  op.doc = "Eigenvalues of a symmetric matrix, ascending.";
  op.arity = 2;
  op.infer = infer_eigvalsh;
  op.reverse = reverse_eigvalsh;
  op.lower = [](const LowerContext& c, Instruction& s) {
    lower_part(c, 0, square_size("eigvalsh", c.in[0]), s);
  };
  return op;
}

// ---- eigvecsh(a, eigh): v (..., n, n). d a = v k v^T with k = (v^T g)[i, j] / (w[j] - w[i])
// beside the diagonal and 0 on it.

Type infer_eigvecsh(std::span<const Type> in, const Attributes&) {
  check_decomposition("eigvecsh", in);
  return in[0];
}

void reverse_eigvecsh(Emitter& e, const NodeView& node, NodeId cotangent,
                      std::span<NodeId> cotangents) {
  const Type a = e.type(node.inputs[0]);
  const std::int64_t n = square_size("eigvecsh", a);
  const NodeId v = node.id;
  const NodeId w = e.emit("eigvalsh", {node.inputs[0], node.inputs[1]});
  const NodeId row = reshape(e, w, with_axes(leading_axes(a), {1, n}));
  const NodeId column = reshape(e, w, with_axes(leading_axes(a), {n, 1}));
  const NodeId one = identity(e, n, a.dtype);
  const NodeId gaps = e.emit("add", {e.emit("subtract", {row, column}), one});
  const NodeId beside = e.emit("subtract", {e.constant(1, a.dtype), one});
  const NodeId parts =
      e.emit("multiply", {multiply_matrices(e, v, cotangent, true, false), beside});
  // 0/0 stays: whether a function tells the vectors of equal eigenvalues apart cannot be seen from
  // a cotangent that happens to be 0, and a number here would be wrong in derivatives of gradients.
  const NodeId k = e.emit("divide", {parts, gaps});
  const NodeId s = multiply_matrices(e, multiply_matrices(e, v, k, false, false), v, false, true);
  cotangents[0] = without_dead(e, node, cotangent, to_lower_triangle(e, s));
}

Op eigvecsh_op() {
  Op op;
  op.name = "eigvecsh";
  op.doc = "Eigenvectors of a symmetric matrix, in columns.";
  op.arity = 2;
  op.infer = infer_eigvecsh;
  op.reverse = reverse_eigvecsh;
  op.lower = [](const LowerContext& c, Instruction& s) {
    const std::int64_t n = square_size("eigvecsh", c.in[0]);
    lower_part(c, n, n * n, s);
  };
  return op;
}

}  // namespace

std::vector<Op> linalg_eigh_ops() { return {eigh_op(), eigvalsh_op(), eigvecsh_op()}; }

}  // namespace buropt
