// matmul_epilogue {"transposes"}, {"ending"}, {"shape"}: a matrix product and what its readers made
// of it,
//
//   mask(relu((A B + bias) + residual))
//
// Only the planner makes it (graph/epilogue.h). The operands are A, B and those parts that "ending"
// says are given; relu is no operand. The result has the given shape, with the product's elements
// in order.
#include "ops/families.h"
#include "ops/matmul_kernels.h"

namespace buropt {
namespace {

MatmulForm form_of(std::span<const Type> in, const Attributes& attributes) {
  const bool ta = attributes[0][0] != 0;
  const bool tb = attributes[0][1] != 0;
  const Shape& a = in[0].shape;
  const Shape& b = in[1].shape;
  const auto& parts = attributes[1];
  return {a[ta ? 1 : 0],
          a[ta ? 0 : 1],
          b[tb ? 0 : 1],
          ta,
          tb,
          false,
          false,
          {parts[0] != 0, parts[1] != 0, parts[2] != 0, parts[3] != 0}};
}

Type infer(std::span<const Type> in, const Attributes& attributes) {
  Type out = in[0];
  out.shape = Shape(attributes[2]);
  return out;
}

std::int64_t work(std::span<const Type> in, const Type&, const Attributes& attributes) {
  const MatmulForm form = form_of(in, attributes);
  return form.m * form.k * form.n;
}

void lower(const LowerContext& c, Instruction& s) {
  lower_matmul(form_of(c.in, c.attributes), c, s);
}

}  // namespace

std::vector<Op> matmul_epilogue_ops() {
  Op op;
  op.name = "matmul_epilogue";
  op.doc = "A matrix product with a bias, a residual, relu or its slope.";
  op.arity = -1;
  op.attributes = {"transposes", "ending", "shape"};
  op.derived = true;
  op.infer = infer;
  op.work = work;
  op.lower = lower;
  return {op};
}

}  // namespace buropt
