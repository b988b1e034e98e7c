#include "exec/scalar.h"

#include <algorithm>
#include <cmath>

namespace buropt {
namespace {

/// Unrolled to more than this many numbers the tile executor's loops are the better program, unless
/// there is nothing to loop over: nodes of few elements each.
constexpr std::int64_t kMaxElements = 512;
constexpr std::int64_t kFewElements = 4;

}  // namespace

template <class T>
class ScalarCompiler final : public ElementEmitter {
 public:
  explicit ScalarCompiler(const Graph& graph) : g_(graph), registers_(graph.nodes.size()) {}

  std::optional<ScalarProgram<T>> run() {
    const std::int64_t limit =
        std::max(kMaxElements, kFewElements * static_cast<std::int64_t>(g_.nodes.size()));
    std::int64_t elements = 0;
    for (const Node& node : g_.nodes) {
      elements += node.type.size();
      if (node.type.batched || elements > limit) return std::nullopt;
    }
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      const Node& node = g_.nodes[i];
      if (node.op == kNoOp) {
        leaf(i);
        continue;
      }
      const Op& record = buropt::op(node.op);
      node_ = i;
      registers_[i].assign(size(node.type), -1);
      if (record.elements != nullptr)
        record.elements(*this);
      else if (scalar_handler_of<T>(record) != nullptr)
        elementwise(record);
      else
        return std::nullopt;
      if (declined_ || p_.code_.size() > static_cast<std::size_t>(limit)) return std::nullopt;
    }
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      p_.stores_.push_back({static_cast<std::int32_t>(k), registers_of(g_.outputs[k])});
    }
    return std::move(p_);
  }

  std::int32_t in(int operand, std::int64_t element) const override {
    return registers_of(input(operand))[static_cast<std::size_t>(element)];
  }
  void out(std::int64_t element, std::int32_t reg) override {
    registers_[node_][static_cast<std::size_t>(element)] = reg;
  }
  std::int32_t zero() override {
    if (zero_ < 0) zero_ = new_register(T(0));
    return zero_;
  }
  std::int32_t constant(double value) override {
    return value == 0 && !std::signbit(value) ? zero() : new_register(static_cast<T>(value));
  }
  std::optional<double> known(int operand, std::int64_t element) const override {
    const Node& node = g_.node(input(operand));
    if (!node.is_constant) return std::nullopt;
    const auto& values = g_.constants[static_cast<std::size_t>(node.slot)];
    return reinterpret_cast<const T*>(values->data())[element];
  }
  void decline() override { declined_ = true; }
  int arity() const override { return static_cast<int>(g_.nodes[node_].inputs.size()); }
  const Type& in_type(int operand) const override { return g_.node(input(operand)).type; }
  const Type& out_type() const override { return g_.nodes[node_].type; }
  const Attributes& attributes() const override { return g_.nodes[node_].attributes; }

  std::int32_t emit(std::string_view name, std::span<const std::int32_t> regs,
                    std::int64_t number) override {
    if (name == "add" && regs[0] == zero_) return regs[1];
    if (name == "add" && regs[1] == zero_) return regs[0];
    return append(buropt::op(find_op(name)), regs, number);
  }

 private:
  static std::size_t size(const Type& type) { return static_cast<std::size_t>(type.size()); }

  NodeId input(int operand) const {
    return g_.nodes[node_].inputs[static_cast<std::size_t>(operand)];
  }
  const std::vector<std::int32_t>& registers_of(NodeId node) const {
    return registers_[static_cast<std::size_t>(node)];
  }

  std::int32_t new_register(T value) {
    p_.initial_.push_back(value);
    return static_cast<std::int32_t>(p_.initial_.size()) - 1;
  }

  std::int32_t append(const Op& record, std::span<const std::int32_t> regs, std::int64_t number) {
    const std::int32_t out = new_register(T(0));
    p_.code_.add(record, out, regs, number);
    return out;
  }

  void leaf(std::size_t i) {
    const Node& node = g_.nodes[i];
    const auto first = static_cast<std::int32_t>(p_.initial_.size());
    for (std::int64_t e = 0; e < node.type.size(); ++e) {
      const T value = node.is_constant
                          ? reinterpret_cast<const T*>(
                                g_.constants[static_cast<std::size_t>(node.slot)]->data())[e]
                          : T(0);
      registers_[i].push_back(new_register(value));
    }
    if (node.is_input()) p_.loads_.push_back({node.slot, first, node.type.size()});
  }

  /// An elementwise primitive, one instruction per element of the result.
  void elementwise(const Op& record) {
    const Shape& shape = out_type().shape;
    const std::size_t arity = g_.nodes[node_].inputs.size();
    const auto& lists = attributes().lists;
    const std::int64_t number = lists[0].empty() ? 0 : lists[0][0];
    std::vector<std::int32_t> regs(arity);
    for (std::int64_t e = 0; e < shape.size(); ++e) {
      for (std::size_t k = 0; k < arity; ++k) {
        const int operand = static_cast<int>(k);
        regs[k] = in(operand, broadcast_element(in_type(operand).shape, shape, e));
      }
      if (record.name == "add")
        out(e, emit("add", regs, 0));
      else
        out(e, append(record, regs, number));
    }
  }

  /// The element of an operand that meets element e of the result.
  static std::int64_t broadcast_element(const Shape& own, const Shape& shape, std::int64_t e) {
    const auto strides = own.strides();
    std::int64_t element = 0;
    for (int axis = shape.rank() - 1; axis >= 0; --axis) {
      const std::int64_t index = e % shape[axis];
      e /= shape[axis];
      const int mine = axis - (shape.rank() - own.rank());
      if (mine >= 0 && own[mine] != 1) element += index * strides[static_cast<std::size_t>(mine)];
    }
    return element;
  }

  const Graph& g_;
  ScalarProgram<T> p_;
  std::vector<std::vector<std::int32_t>> registers_;
  std::size_t node_ = 0;
  std::int32_t zero_ = -1;
  bool declined_ = false;
};

template <class T>
std::optional<ScalarProgram<T>> ScalarProgram<T>::compile(const Graph& graph) {
  return ScalarCompiler<T>(graph).run();
}

template <class T>
void ScalarProgram<T>::run(const T* const* inputs, T* const* outputs,
                           std::vector<T>& registers) const noexcept {
  T* r = registers.data();
  for (const Load& load : loads_) std::copy_n(inputs[load.input], load.count, r + load.first);
  run_registers(r);
  for (const Store& store : stores_) {
    T* out = outputs[store.output];
    for (const std::int32_t reg : store.registers) *out++ = r[reg];
  }
}

template <class T>
void ScalarProgram<T>::run_registers(T* registers) const noexcept {
  code_.run(registers);
}

template <class T>
std::int32_t ScalarProgram<T>::input_register(std::int32_t k) const noexcept {
  const auto load = std::find_if(loads_.begin(), loads_.end(),
                                 [k](const Load& candidate) { return candidate.input == k; });
  return load == loads_.end() ? -1 : load->first;
}

template <class T>
std::int32_t ScalarProgram<T>::output_register(std::int32_t k) const noexcept {
  const auto store = std::find_if(stores_.begin(), stores_.end(),
                                  [k](const Store& candidate) { return candidate.output == k; });
  return store->registers.front();
}

template class ScalarProgram<float>;
template class ScalarProgram<double>;

}  // namespace buropt
