// matmul {"transpose_a"}, {"transpose_b"}, {"sum_stack"} and matmul_batch_sum, the same summed over
// the samples.
//
// The primitive itself is a product of matrices op(A) (..., m, k) op(B) (..., k, n) whose leading
// axes broadcast, or the sum of a stack of such products. simplify gives vectors an axis of length
// 1, and turns a stack into one product of matrices wherever it can: the rows of a stack times one
// matrix are the rows of a taller matrix.
#include <algorithm>
#include <numeric>

#include "ops/axes.h"
#include "ops/families.h"
#include "ops/matmul_kernels.h"
#include "ops/stack.h"

namespace buropt {
namespace {

constexpr std::string_view kName = "matmul", kSum = "matmul_batch_sum";

bool flag(const Attributes& attributes, int list) {
  return !attributes[list].empty() && attributes[list][0] != 0;
}

Attributes flags(bool transpose_a, bool transpose_b) {
  return Attributes({transpose_a}, {transpose_b});
}

[[noreturn]] void refuse(const Type& a, const Type& b, const char* why, const char* instead) {
  raise(ErrorKind::value, "buropt.matmul: %s: a is %s, b is %s%s", why, a.shape.str().c_str(),
        b.shape.str().c_str(), instead);
}

struct Product {
  std::int64_t m, k, n;
  Shape stack;  ///< the leading axes of both operands together
};

Product product_of(std::span<const Type> in, const Attributes& attributes) {
  const MatrixSize a = matrix_size(kName, in[0]);
  const MatrixSize b = matrix_size(kName, in[1]);
  const bool ta = flag(attributes, 0);
  const bool tb = flag(attributes, 1);
  Product p{ta ? a.columns : a.rows, ta ? a.rows : a.columns, tb ? b.rows : b.columns, {}};
  if (p.k != (tb ? b.columns : b.rows)) refuse(in[0], in[1], "inner sizes differ", "");
  if (in[0].shape.rank() > 2 || in[1].shape.rank() > 2) {
    try {
      p.stack = broadcast_leading_axes(kName, in);
    } catch (const Error&) {
      refuse(in[0], in[1], "the axes in front of the last two do not broadcast", "");
    }
  }
  return p;
}

MatmulForm form_of(std::span<const Type> in, const Attributes& attributes, bool sums_samples) {
  const Product p = product_of(in, attributes);
  return {p.m,         p.k, p.n, flag(attributes, 0), flag(attributes, 1), flag(attributes, 2),
          sums_samples};
}

Type infer(std::span<const Type> in, const Attributes& attributes) {
  const Product p = product_of(in, attributes);
  const bool sums = flag(attributes, 2);
  if (sums && !(leading_axes(in[0]) == leading_axes(in[1]))) {
    refuse(in[0], in[1], "the axes in front of the last two differ", "");
  }
  Type out = in[0];
  out.batched = in[0].batched || in[1].batched;
  out.shape = with_axes(sums ? Shape() : p.stack, {p.m, p.n});
  return out;
}

NodeId reshape(Emitter& e, NodeId node, const Shape& shape) {
  return e.emit("reshape", {node}, Attributes({shape.begin(), shape.end()}));
}

// ---- simplify

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
  if (ra < 1 || rb < 1) refuse(ta, tb, "inner sizes differ", "; scalars multiply with *");
  if (sa[ra - 1] != sb[rb == 1 ? 0 : rb - 2]) {
    refuse(ta, tb, "inner sizes differ",
           rb == 2 && sa[ra - 1] == sb[1] ? "; did you mean a @ b.T?" : "");
  }
  if (ra >= 2 && rb >= 2) return kNone;
  const NodeId left = ra >= 2 ? a : reshape(e, a, {1, sa[0]});
  const NodeId right = rb >= 2 ? b : reshape(e, b, {sb[0], 1});
  const NodeId product = e.emit(kName, {left, right}, flags(false, false));
  Shape shape = ra >= 2 && rb >= 2 ? Shape() : leading_axes(e.type(ra > rb ? left : right));
  if (ra >= 2) shape.push_back(sa[ra - 2]);
  if (rb >= 2) shape.push_back(sb[rb - 1]);
  return reshape(e, product, shape);
}

/// The operand of a node that only transposes matrices, or kNone.
NodeId transposed_operand(const Emitter& e, NodeId node) {
  static const OpId transpose = find_op("transpose");
  const Definition d = e.definition(node);
  if (d.op != transpose) return kNone;
  const auto& axes = d.attributes[0];
  const auto rank = static_cast<std::int64_t>(axes.size());
  if (rank < 2 || axes[axes.size() - 1] != rank - 2) return kNone;
  for (std::int64_t axis = 0; axis < rank - 2; ++axis) {
    if (axes[static_cast<std::size_t>(axis)] != axis) return kNone;
  }
  return d.inputs[0];
}

/// The operand as one matrix whose rows are those of all its matrices.
NodeId tall(Emitter& e, NodeId node) {
  const Shape shape = e.type(node).shape;
  const int rank = shape.rank();
  return reshape(e, node, {shape.product(0, rank - 1), shape[rank - 1]});
}

/// A stack of products as one product of matrices, or kNone.
NodeId simplify_stack(Emitter& e, NodeId a, NodeId b, const Attributes& attributes) {
  const bool ta = flag(attributes, 0);
  const bool tb = flag(attributes, 1);
  const std::array<Type, 2> in{e.type(a), e.type(b)};
  const Product p = product_of(in, attributes);
  const std::int64_t a_count = leading_axes(in[0]).size();
  const std::int64_t b_count = leading_axes(in[1]).size();
  if (flag(attributes, 2)) {
    // The sum of A' B is the product of the tall matrices. Vectors are their own transposes.
    const bool a_tall = ta || p.k == 1;
    const bool b_tall = !tb || p.k == 1;
    if (!a_tall || !b_tall || !(leading_axes(in[0]) == leading_axes(in[1]))) {
      return p.stack.rank() == 0 ? e.emit(kName, {a, b}, flags(ta, tb)) : kNone;
    }
    const NodeId left = reshape(e, a, {a_count * p.k, p.m});
    const NodeId right = reshape(e, b, {b_count * p.k, p.n});
    return e.emit(kName, {left, right}, flags(true, false));
  }
  if (p.stack.rank() == 0) return kNone;
  const Shape result = with_axes(p.stack, {p.m, p.n});
  const auto matrix = [&](NodeId node, std::size_t k) {
    const MatrixSize size = matrix_size(kName, in[k]);
    return reshape(e, node, {size.rows, size.columns});
  };
  if (a_count == 1 && b_count == 1) {
    return reshape(e, e.emit(kName, {matrix(a, 0), matrix(b, 1)}, attributes), result);
  }
  if (b_count == 1 && !ta) {
    return reshape(e, e.emit(kName, {tall(e, a), matrix(b, 1)}, flags(false, tb)), result);
  }
  if (a_count == 1 && p.n == 1) {
    const NodeId rows = reshape(e, b, {b_count, p.k});
    return reshape(e, e.emit(kName, {rows, matrix(a, 0)}, flags(false, !ta)), result);
  }
  return kNone;
}

NodeId simplify(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const bool ta = flag(attributes, 0);
  const bool tb = flag(attributes, 1);
  if (!ta && !tb && !flag(attributes, 2)) {
    const NodeId found = simplify_operands(e, inputs[0], inputs[1]);
    if (found != kNone) return found;
  }
  // A transposed operand is read in place.
  const NodeId a = transposed_operand(e, inputs[0]);
  const NodeId b = transposed_operand(e, inputs[1]);
  if (a != kNone || b != kNone) {
    Attributes other = attributes;
    other.lists[0] = {ta != (a != kNone)};
    other.lists[1] = {tb != (b != kNone)};
    return e.emit(kName, {a != kNone ? a : inputs[0], b != kNone ? b : inputs[1]}, other);
  }
  const std::array<Type, 2> in{e.type(inputs[0]), e.type(inputs[1])};
  if (in[0].shape.rank() != 2 || in[1].shape.rank() != 2 || flag(attributes, 2)) {
    return simplify_stack(e, inputs[0], inputs[1], attributes);
  }
  // W x_s for every sample s is one product of the rows x_s' with W'.
  const Product s = product_of(in, attributes);
  if (!in[0].batched && in[1].batched && s.n == 1) {
    const NodeId rows = reshape(e, inputs[1], {1, s.k});
    const NodeId product = e.emit(kName, {rows, inputs[0]}, flags(false, !ta));
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

NodeId sum_over_batch(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  if (!e.type(inputs[0]).batched || !e.type(inputs[1]).batched) return kNone;
  return e.emit(find_op(kSum), inputs, attributes);
}

// ---- reverse

/// Where a row of the cotangent is all 0, in the layout of the first operand, or where a column is,
/// in the layout of the second.
NodeId dead_lines(Emitter& e, NodeId cotangent, const Shape& operand, int k, bool transposed) {
  const std::int64_t rank = e.type(cotangent).shape.rank();
  const NodeId size = e.emit("absolute", {cotangent});
  NodeId total = e.emit("sum", {size}, Attributes({k == 0 ? rank - 1 : rank - 2}, {1}));
  if (rank > 2) {
    Shape lines = operand;
    const int last = operand.rank() - 1;
    if (transposed) std::swap(lines[last - 1], lines[last]);
    lines[k == 0 ? last : last - 1] = 1;
    total = sum_to_shape(e, total, lines);
  }
  const NodeId dead = e.emit("equal", {total, e.constant(0, e.type(cotangent).dtype)});
  if (!transposed) return dead;
  std::vector<std::int64_t> axes(static_cast<std::size_t>(e.type(dead).shape.rank()));
  std::iota(axes.begin(), axes.end(), std::int64_t{0});
  std::swap(axes[axes.size() - 2], axes[axes.size() - 1]);
  return e.emit("transpose", {dead}, Attributes(axes));
}

void reverse(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  const bool ta = flag(node.attributes, 0);
  const bool tb = flag(node.attributes, 1);
  std::array<NodeId, 2> in{node.inputs[0], node.inputs[1]};
  std::array<NodeId, 2> dead{kNone, kNone};
  const bool batched = e.type(node.id).batched;
  if (node.guarded) {
    // Operands with 0 in their dead lines, so that no sum meets what they hold. One that all
    // samples share stays as it is.
    const NodeId zero = e.constant(0, e.type(cotangent).dtype);
    for (int k = 0; k < 2; ++k) {
      const auto i = static_cast<std::size_t>(k);
      dead[i] = dead_lines(e, cotangent, e.type(in[i]).shape, k, k == 0 ? ta : tb);
      if (e.type(in[i]).batched == batched) in[i] = e.emit("where", {dead[i], zero, in[i]});
    }
  }
  const auto [a, b] = in;
  cotangents[0] =
      ta ? product_for(e, a, b, cotangent, tb, true) : product_for(e, a, cotangent, b, false, !tb);
  cotangents[1] =
      tb ? product_for(e, b, cotangent, a, true, ta) : product_for(e, b, a, cotangent, !ta, false);
  for (std::size_t k = 0; k < 2 && node.guarded; ++k) {
    if (batched && !e.type(node.inputs[k]).batched) continue;
    cotangents[k] = without_nan(e, dead[k], cotangents[k]);
  }
}

// ---- lowering

template <bool sums_samples>
void lower(const LowerContext& c, Instruction& s) {
  lower_matmul(form_of(c.in, c.attributes, sums_samples), c, s);
}

void elements(ElementEmitter& e) {
  const std::array<Type, 2> in{e.in_type(0), e.in_type(1)};
  const MatmulForm z = form_of(in, e.attributes(), false);
  const LowerContext c{in, e.out_type(), e.attributes(), 1};
  Instruction stack;
  append_stack(c, z.m * z.n, stack);
  const std::int64_t count = stack.numbers[0];
  const std::int64_t* a_places = stack.numbers.data() + 3;
  const std::int64_t* b_places = a_places + 1 + count;
  std::vector<std::int32_t> totals(static_cast<std::size_t>(e.out_type().size()), e.zero());
  for (std::int64_t s = 0; s < count; ++s) {
    const std::int64_t first = z.sums_stack ? 0 : s * z.m * z.n;
    for (std::int64_t i = 0; i < z.m; ++i) {
      for (std::int64_t j = 0; j < z.n; ++j) {
        std::int32_t& total = totals[static_cast<std::size_t>(first + i * z.n + j)];
        for (std::int64_t p = 0; p < z.k; ++p) {
          const std::int64_t at_a = z.transpose_a ? p * z.m + i : i * z.k + p;
          const std::int64_t at_b = z.transpose_b ? j * z.k + p : p * z.n + j;
          const std::int32_t a = e.in(0, a_places[s] + at_a);
          const std::int32_t b = e.in(1, b_places[s] + at_b);
          total = e.emit("add", {total, e.emit("multiply", {a, b})});
        }
      }
    }
  }
  for (std::size_t i = 0; i < totals.size(); ++i) e.out(static_cast<std::int64_t>(i), totals[i]);
}

/// Multiply-adds. Of the three sizes, that of what the others broadcast to counts.
std::int64_t work(std::span<const Type> in, const Type& out, const Attributes& attributes) {
  const Product p = product_of(in, attributes);
  return std::max({in[0].size() * p.n, in[1].size() * p.m, out.size() * p.k});
}

}  // namespace

std::vector<Op> matmul_ops() {
  Op matmul;
  matmul.name = kName;
  matmul.doc = "Product of matrices and vectors, a @ b.";
  matmul.arity = 2;
  matmul.attributes = {"transpose_a", "transpose_b", "sum_stack"};
  matmul.simplify = simplify;
  matmul.infer = infer;
  matmul.linearity = Linearity::each;
  matmul.reverse = reverse;
  matmul.batch_sum = sum_over_batch;
  matmul.work = work;
  matmul.lower = lower<false>;
  matmul.elements = elements;

  Op sum = matmul;
  sum.name = kSum;
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
