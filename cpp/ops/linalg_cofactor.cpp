// cofactor(a, e_1, ..., e_m): the derivative of a's cofactor matrix along e_1, ..., e_m.
//
// It is the derivative of the determinant of order m + 1: the matrix that, multiplied with e_(m+1)
// element by element and summed, gives the derivative along one more direction. All directions are
// alike, so the primitive's own derivatives are the primitive with other directions, at any order.
#include "math/cofactor.h"

#include <algorithm>

#include "ops/families.h"
#include "ops/stack.h"

namespace buropt {
namespace {

Type infer(std::span<const Type> in, const Attributes&) {
  if (in.empty()) raise(ErrorKind::value, "buropt.cofactor takes a matrix");
  square_size("cofactor", in[0]);
  if (in.size() - 1 > kMaxDirections) {
    raise(ErrorKind::value, "buropt.det: derivatives of an order above %zu are not supported",
          kMaxDirections + 1);
  }
  Type out = in[0];
  for (const Type& type : in) {
    if (!(type.shape == in[0].shape)) {
      raise(ErrorKind::value, "buropt.cofactor: shapes %s and %s differ", in[0].shape.str().c_str(),
            type.shape.str().c_str());
    }
    out.batched = out.batched || type.batched;
  }
  return out;
}

/// The directions in one order, so that equal derivatives are found to be equal.
NodeId simplify(Emitter& e, std::span<const NodeId> inputs, const Attributes&) {
  if (inputs.size() < 3) return kNone;
  std::vector<NodeId> sorted(inputs.begin(), inputs.end());
  std::sort(sorted.begin() + 1, sorted.end());
  if (std::equal(sorted.begin(), sorted.end(), inputs.begin())) return kNone;
  return e.emit(find_op("cofactor"), sorted, {});
}

/// By a: one direction more. By a direction: the cotangent in its place.
void reverse(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  static const OpId cofactor = find_op("cofactor");
  const std::vector<NodeId> inputs(node.inputs.begin(), node.inputs.end());
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    std::vector<NodeId> operands = inputs;
    if (k == 0)
      operands.push_back(cotangent);
    else
      operands[k] = cotangent;
    cotangents[k] = e.emit(cofactor, operands, {});
  }
}

template <class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[0];
  auto* order = reinterpret_cast<std::int64_t*>(frame.scratch);
  T* scratch = reinterpret_cast<T*>(order + 2 * n);
  for_matrices<T>(s, frame, 1, [&](const auto& in, T* out) {
    cofactor(in[0], std::span<const T* const>(in.data() + 1, s.in.size() - 1), n, out, scratch,
             order);
  });
}

void lower(const LowerContext& c, Instruction& s) {
  const std::int64_t n = square_size("cofactor", c.in[0]);
  s.numbers = {n};
  append_stack(c, n * n, s);
  s.run = c.out.dtype == DType::float32 ? kernel<float> : kernel<double>;
  const auto directions = static_cast<std::int64_t>(c.in.size()) - 1;
  s.scratch_bytes = 2 * n * static_cast<std::int64_t>(sizeof(std::int64_t)) +
                    cofactor_scratch(n, directions) * size_of(c.out.dtype);
}

}  // namespace

std::vector<Op> linalg_cofactor_ops() {
  Op op;
  op.name = "cofactor";
  op.doc = "Cofactor matrix, and its derivative along further operands.";
  op.arity = -1;
  op.derived = true;
  op.simplify = simplify;
  op.infer = infer;
  op.reverse = reverse;
  op.lower = lower;
  return {op};
}

}  // namespace buropt
