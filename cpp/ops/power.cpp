// power, and integer_power for constant integer exponents: no logarithm, right at 0 and below.
#include "math/elementary.h"
#include "ops/elementwise.h"
#include "ops/families.h"

namespace buropt {
namespace {

struct Power {
  static constexpr std::string_view name = "power", doc = "a to the power b.";
  static constexpr int arity = 2;
  static constexpr bool fused = true, singular = true;
  static constexpr Interval domain{0.1, 3};
  template <class T>
  static T value(T a, T b) {
    return pow(a, b);
  }
  template <class T>
  static T slope_a(T a, T b, T) {
    const T slope = b * pow(a, b - T(1));
    return select((b == T(0)) & (slope != slope), T(0), slope);
  }
  // The logarithm counts only where the base is not 0: 0^b does not move with b.
  template <class T>
  static T slope_b(T a, T, T y) {
    return select(a == T(0), T(0), y * log(a));
  }
};

// ---- integer_power {"n"}

template <class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t size = s.numbers[0] * s.rows(frame);
  const int n = static_cast<int>(s.numbers[1]);
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  constexpr std::int64_t lanes = Pack<T>::size;
  std::int64_t i = 0;
  for (; i + lanes <= size; i += lanes) {
    powi(Pack<T>::load(in + i), n).store(out + i);
  }
  if (i < size) {
    const int rest = static_cast<int>(size - i);
    powi(Pack<T>::load_n(in + i, rest, T(1)), n).store_n(out + i, rest);
  }
}

template <class T>
void scalar_handler(T* registers, const ScalarInstruction<T>* at) {
  registers[at->out] = powi(registers[at->in[0]], static_cast<int>(at->number));
  BUROPT_CONTINUE(registers, at);
}

Type infer(std::span<const Type> in, const Attributes& attributes) {
  const std::int64_t n = attributes[0].at(0);
  if (n != static_cast<std::int32_t>(n)) {
    raise(ErrorKind::value, "buropt.power: the constant exponent %lld is beyond 32 bits",
          static_cast<long long>(n));
  }
  return elementwise::infer("power", in);
}

NodeId simplify(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const std::int64_t n = attributes[0].at(0);
  if (n == 1) return inputs[0];
  if (n == 2) return e.emit("square", {inputs[0]});
  return kNone;
}

void lower(const LowerContext& c, Instruction& s) {
  s.numbers = {c.out.size(), c.attributes[0][0]};
  s.run = c.out.dtype == DType::float32 ? kernel<float> : kernel<double>;
}

void reverse(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  const std::int64_t n = node.attributes[0][0];
  const NodeId lower_power = e.emit("integer_power", {node.inputs[0]}, Attributes({n - 1}));
  const NodeId factor = e.constant(static_cast<double>(n), e.type(node.id).dtype);
  cotangents[0] = e.emit("multiply", {cotangent, e.emit("multiply", {factor, lower_power})});
}

Op integer_power_op() {
  Op op;
  op.name = "integer_power";
  op.doc = "x to a constant integer power, by multiplication.";
  op.attributes = {"n"};
  op.elementwise = true;
  op.in_place = true;
  op.simplify = simplify;
  op.infer = infer;
  op.reverse = reverse;
  op.lower = lower;
  op.scalar = {scalar_handler<float>, scalar_handler<double>};
  return op;
}

}  // namespace

std::vector<Op> power_ops() {
  std::vector<Op> ops = elementwise_ops<Power>();
  ops.push_back(integer_power_op());
  return ops;
}

}  // namespace buropt
