// sparse_dot: a sparse (CSR) row of data times a vector (d,) or matrix (d, k). It costs
// O(nonzeros), and so does sparse_dot_sum, its reverse summed over the samples. sparse_dot_vjp is
// the reverse sample by sample, dense rows.
#include "ops/sparse.h"

#include <algorithm>

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
  if (in[1].csr) {
    raise(ErrorKind::type, "buropt.sparse_dot: two sparse rows cannot be multiplied");
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

Type infer_dot_vjp(std::span<const Type> in, const Attributes& attributes) {
  check_row(in, "sparse_dot_vjp");
  Type out = in[1];
  out.batched = true;
  out.shape = Shape(attributes[0]);
  return out;
}

/// Calls f(sample, column, value) for every entry, each sample's in order.
template <class T, class F>
void for_entries(const CsrRows<T>& rows, F&& f) noexcept {
  for (std::int64_t i = 0; i < rows.n; ++i) {
    const std::int64_t row = rows.row(i);
    for (std::int64_t e = rows.row_starts[row]; e < rows.row_starts[row + 1]; ++e) {
      f(i, std::int64_t{rows.columns[e]}, rows.values == nullptr ? T(1) : rows.values[e]);
    }
  }
}

// numbers of these two: columns of x (1 for a vector), elements of x, elements of a row of the
// other operand (0: the same for all samples).

/// Each sample's row times its own x.
template <class T>
void dot_own_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t k = s.numbers[0];
  const auto* rows = buffer_as<const CsrRows<T>>(frame, s.in[0]);
  const T* x = buffer_as<const T>(frame, s.in[1]);
  T* z = buffer_as<T>(frame, s.out);
  std::fill_n(z, rows->n * k, T(0));
  for_entries(*rows, [&](std::int64_t i, std::int64_t column, T value) {
    const T* from = x + i * s.numbers[1] + column * k;
    for (std::int64_t j = 0; j < k; ++j) z[i * k + j] += value * from[j];
  });
}

template <class T>
void dot_vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t k = s.numbers[0];
  const auto* rows = buffer_as<const CsrRows<T>>(frame, s.in[0]);
  const T* r = buffer_as<const T>(frame, s.in[1]);
  T* g = buffer_as<T>(frame, s.out);
  std::fill_n(g, rows->n * s.numbers[1], T(0));
  for_entries(*rows, [&](std::int64_t i, std::int64_t column, T value) {
    T* to = g + i * s.numbers[1] + column * k;
    for (std::int64_t j = 0; j < k; ++j) to[j] += value * r[i * s.numbers[2] + j];
  });
}

/// The columns of a row are in order.
template <class T>
void take_kernel(const Instruction& s, const Frame& frame) noexcept {
  const auto* rows = buffer_as<const CsrRows<T>>(frame, s.in[0]);
  const T* wanted = buffer_as<const T>(frame, s.in[1]);
  T* out = buffer_as<T>(frame, s.out);
  for (std::int64_t i = 0; i < rows->n; ++i, wanted += s.numbers[1]) {
    const std::int64_t row = rows->row(i);
    const std::int32_t* begin = rows->columns + rows->row_starts[row];
    const std::int32_t* end = rows->columns + rows->row_starts[row + 1];
    for (std::int64_t k = 0; k < s.numbers[0]; ++k) {
      const auto column = static_cast<std::int32_t>(wanted[k]);
      const std::int32_t* found = std::lower_bound(begin, end, column);
      const bool is_stored = found != end && *found == column;
      const T value =
          rows->values == nullptr || !is_stored ? T(1) : rows->values[found - rows->columns];
      *out++ = is_stored ? value : T(0);
    }
  }
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

SparseProduct sparse_product(const Instruction& s) {
  const bool is_dot = s.run == dot_kernel<float> || s.run == dot_kernel<double>;
  const bool is_sum = s.run == dot_sum_kernel<float> || s.run == dot_sum_kernel<double>;
  if (!(is_dot || is_sum) || s.numbers[0] != 0) return SparseProduct::none;
  return is_dot ? SparseProduct::dot : SparseProduct::sum;
}

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
    // Summed over the samples, as it is unless they are asked for one by one, sparse_dot_sum.
    cotangents[1] = e.emit("sparse_dot_vjp", {node.inputs[0], cotangent},
                           Attributes({shape.begin(), shape.end()}));
  };
  dot.lower = [](const LowerContext& c, Instruction& s) {
    const std::int64_t columns = c.in[1].shape.rank() == 2 ? c.in[1].shape[1] : 0;
    if (c.in[1].batched) {
      s.numbers = {std::max<std::int64_t>(1, columns), c.in[1].size()};
      s.run = c.out.dtype == DType::float32 ? dot_own_kernel<float> : dot_own_kernel<double>;
    } else {
      s.numbers = {columns};
      s.run = c.out.dtype == DType::float32 ? dot_kernel<float> : dot_kernel<double>;
    }
  };

  Op vjp;
  vjp.name = "sparse_dot_vjp";
  vjp.doc = "Sparse row times cotangent, as a dense row.";
  vjp.arity = 2;
  vjp.attributes = {"shape"};
  vjp.derived = true;
  vjp.batching = Batching::spreads;
  vjp.infer = infer_dot_vjp;
  vjp.linearity = Linearity::each;
  vjp.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                   std::span<NodeId> cotangents) {
    cotangents[1] = e.emit("sparse_dot", {node.inputs[0], cotangent});
  };
  vjp.batch_sum = [](Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
    return e.emit(find_op("sparse_dot_sum"), inputs, attributes);
  };
  vjp.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = {c.out.shape.rank() == 2 ? c.out.shape[1] : 1, c.out.size(),
                 c.in[1].batched ? c.in[1].size() : 0};
    s.run = c.out.dtype == DType::float32 ? dot_vjp_kernel<float> : dot_vjp_kernel<double>;
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

  Op take;
  take.name = "sparse_take";
  take.doc = "Entries of a sparse row at some columns; 0 where it has none.";
  take.arity = 2;
  take.derived = true;
  take.batching = Batching::spreads;
  take.infer = [](std::span<const Type> in, const Attributes&) {
    check_row(in, "sparse_take");
    Type out = in[1];
    out.batched = true;
    return out;
  };
  take.reverse = [](Emitter&, const NodeView&, NodeId, std::span<NodeId>) {};
  take.forward = [](Emitter&, const NodeView&, std::span<const NodeId>) { return kNone; };
  take.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = {c.in[1].size(), c.in[1].batched ? c.in[1].size() : 0};
    s.run = c.out.dtype == DType::float32 ? take_kernel<float> : take_kernel<double>;
  };
  return {dot, vjp, sum, take};
}

}  // namespace buropt
