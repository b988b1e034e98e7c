#include "ops/elementwise.h"

namespace buropt::elementwise {

Type infer(std::string_view name, std::span<const Type> in) {
  Type out;
  out.dtype = in[0].dtype;
  for (const Type& type : in) {
    if (type.csr) {
      raise(ErrorKind::type,
            "buropt.%.*s: a sparse row only supports products with a vector or matrix (a @ x)",
            static_cast<int>(name.size()), name.data());
    }
    BUROPT_ASSERT(type.dtype == out.dtype);
    out.batched = out.batched || type.batched;
  }
  out.shape = broadcast_shapes(name, in);
  return out;
}

namespace {

std::vector<Type> types_of(const Emitter& e, std::span<const NodeId> inputs) {
  std::vector<Type> types;
  for (const NodeId input : inputs) types.push_back(e.type(input));
  return types;
}

/// The number that an operand repeats, or kNone.
NodeId repeated(const Emitter& e, NodeId operand) {
  static const OpId broadcast_to = find_op("broadcast_to");
  const Definition d = e.definition(operand);
  const NodeId source = d.op == broadcast_to ? d.inputs[0] : operand;
  return e.type(source).size() == 1 ? source : kNone;
}

/// What all samples share of an operand, or kNone.
NodeId shared(const Emitter& e, NodeId operand) {
  static const OpId to_batched = find_op("to_batched");
  const Definition d = e.definition(operand);
  if (d.op == to_batched) return d.inputs[0];
  return e.type(operand).batched ? kNone : operand;
}

/// The operands as `source` gives them, if it does so for all and changes one at least.
std::optional<std::vector<NodeId>> sources(const Emitter& e, std::span<const NodeId> operands,
                                           NodeId (*source)(const Emitter&, NodeId)) {
  std::vector<NodeId> result;
  for (const NodeId operand : operands) result.push_back(source(e, operand));
  if (std::find(result.begin(), result.end(), kNone) != result.end()) return std::nullopt;
  if (std::equal(result.begin(), result.end(), operands.begin())) return std::nullopt;
  return result;
}

}  // namespace

NodeId simplify(Emitter& e, std::string_view name, std::span<const NodeId> inputs) {
  static const OpId broadcast_to = find_op("broadcast_to");
  static const OpId to_batched = find_op("to_batched");
  const Type out = infer(name, types_of(e, inputs));
  std::vector<NodeId> operands(inputs.begin(), inputs.end());
  bool changed = false;
  for (NodeId& operand : operands) {
    const Definition d = e.definition(operand);
    if (d.op != broadcast_to && d.op != to_batched) continue;
    const NodeId kept = std::exchange(operand, d.inputs[0]);
    const std::vector<Type> types = types_of(e, operands);
    if (infer(name, types) == out && plan_loop(types, out))
      changed = true;
    else
      operand = kept;
  }
  if (changed) return e.emit(find_op(name), operands, {});
  // What is the same for all samples, or the same number everywhere, is computed once.
  if (const auto found = sources(e, operands, shared)) {
    return e.emit("to_batched", {e.emit(find_op(name), *found, {})});
  }
  if (const auto found = sources(e, operands, repeated)) {
    const NodeId number = e.emit(find_op(name), *found, {});
    return e.emit("broadcast_to", {number}, Attributes({out.shape.begin(), out.shape.end()}));
  }
  if (plan_loop(types_of(e, operands), out)) return kNone;
  for (NodeId& operand : operands) {
    if (e.type(operand).shape == out.shape || e.type(operand).size() == 1) continue;
    operand = e.emit("broadcast_to", {operand}, Attributes({out.shape.begin(), out.shape.end()}));
  }
  return e.emit(find_op(name), operands, {});
}

}  // namespace buropt::elementwise
