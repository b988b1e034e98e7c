// sparse_dot: a sparse (CSR) row of data times a vector (d,) or matrix (d, k); costs O(nonzeros),
// and so does its reverse, sparse_dot_sum.
#include "math/csr.h"
#include "ops/families.h"

namespace buropt {
namespace {

void check_row(std::span<const Type> in, const char* name) {
  if (!in[0].csr) raise(ErrorKind::type, "buropt.%s: the first operand must be a sparse row", name);
}

Type infer_dot(std::span<const Type> in, const Attributes&) {
  check_row(in, "sparse_dot");
  const Shape& x = in[1].shape;
  if (in[1].batched || in[1].csr) {
    raise(ErrorKind::type,
          "buropt.sparse_dot: a sparse row of data can only be multiplied with a value that is the "
          "same for all samples");
  }
  if (x.rank() < 1 || x.rank() > 2 || x[0] != in[0].shape[0]) {
    raise(ErrorKind::value, "buropt.matmul: inner sizes differ: a is a sparse row %s, x is %s",
          in[0].shape.str().c_str(), x.str().c_str());
  }
  Type out = in[1];
  out.batched = true;
  out.shape = x.rank() == 2 ? Shape{x[1]} : Shape{};
  return out;
}

/// {"shape"}: (d,) or (d, k).
Type infer_dot_sum(std::span<const Type> in, const Attributes& attributes) {
  check_row(in, "sparse_dot_sum");
  Type out = in[1];
  out.batched = false;
  out.shape = Shape(attributes[0]);
  return out;
}

template <class T>
void dot_kernel(const Instruction& s, const Frame& frame) noexcept {
  const auto* rows = buffer_as<const CsrRows<T>>(frame, s.in[0]);
  const T* x = buffer_as<const T>(frame, s.in[1]);
  T* z = buffer_as<T>(frame, s.out);
  if (s.numbers[0] == 0)
    csr_dot(*rows, x, z);
  else
    csr_dot(*rows, x, s.numbers[0], z);
}

template <class T>
void dot_sum_kernel(const Instruction& s, const Frame& frame) noexcept {
  const auto* rows = buffer_as<const CsrRows<T>>(frame, s.in[0]);
  const T* r = buffer_as<const T>(frame, s.in[1]);
  T* g = buffer_as<T>(frame, s.out);
  if (s.numbers[0] == 0)
    csr_scatter(*rows, r, g);
  else
    csr_scatter(*rows, r, s.numbers[0], g);
}

}  // namespace

std::vector<Op> sparse_ops() {
  Op dot;
  dot.name = "sparse_dot";
  dot.doc = "Sparse row times vector or matrix.";
  dot.arity = 2;
  dot.batching = Batching::spreads;
  dot.derived = true;
  dot.infer = infer_dot;
  dot.linearity = Linearity::each;
  dot.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                   std::span<NodeId> cotangents) {
    const Shape shape = e.type(node.inputs[1]).shape;
    cotangents[1] = e.emit("sparse_dot_sum", {node.inputs[0], cotangent},
                           Attributes({shape.begin(), shape.end()}));
  };
  dot.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = {c.in[1].shape.rank() == 2 ? c.in[1].shape[1] : 0};
    s.run = c.out.dtype == DType::float32 ? dot_kernel<float> : dot_kernel<double>;
  };

  Op sum;
  sum.name = "sparse_dot_sum";
  sum.doc = "Sum over the samples of sparse row times cotangent.";
  sum.arity = 2;
  sum.attributes = {"shape"};
  sum.derived = true;
  sum.batching = Batching::reduces;
  sum.infer = infer_dot_sum;
  sum.linearity = Linearity::each;
  sum.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                   std::span<NodeId> cotangents) {
    cotangents[1] = e.emit("sparse_dot", {node.inputs[0], cotangent});
  };
  sum.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = {c.out.shape.rank() == 2 ? c.out.shape[1] : 0};
    s.run = c.out.dtype == DType::float32 ? dot_sum_kernel<float> : dot_sum_kernel<double>;
  };
  return {dot, sum};
}

}  // namespace buropt
