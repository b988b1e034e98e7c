#include "graph/single.h"

#include <algorithm>

#include "ops/scalar_code.h"

namespace buropt {
namespace {

template <class T>
class TypedSingleProgram final : public SingleProgram {
 public:
  TypedSingleProgram(std::span<const SingleNode> nodes, std::span<const SingleValue> values) {
    for (const SingleNode& node : nodes) code_.add(*node.op, node.out, node.in, node.number);
    for (const SingleValue& value : values) {
      const bool is_made = std::any_of(nodes.begin(), nodes.end(), [&](const SingleNode& node) {
        return node.out == value.operand;
      });
      (is_made ? stores_ : loads_).push_back(value);
    }
  }

  void run(const Frame& frame) const noexcept override {
    T* registers = reinterpret_cast<T*>(frame.scratch);
    const auto memory = [&](const SingleValue& value) {
      return reinterpret_cast<T*>(frame.buffers[value.buffer] + value.offset);
    };
    for (const SingleValue& load : loads_) registers[load.operand] = *memory(load);
    code_.run(registers);
    for (const SingleValue& store : stores_) *memory(store) = registers[store.operand];
  }

 private:
  ScalarCode<T> code_;  ///< its registers have the caller's numbers
  std::vector<SingleValue> loads_;
  std::vector<SingleValue> stores_;
};

template <class T>
std::shared_ptr<const SingleProgram> compile_typed(std::span<const SingleNode> nodes,
                                                   std::span<const SingleValue> values) {
  const bool is_scalar = std::all_of(nodes.begin(), nodes.end(), [](const SingleNode& node) {
    return scalar_handler_of<T>(*node.op) != nullptr;
  });
  return is_scalar ? std::make_shared<const TypedSingleProgram<T>>(nodes, values) : nullptr;
}

}  // namespace

std::shared_ptr<const SingleProgram> SingleProgram::compile(DType dtype,
                                                            std::span<const SingleNode> nodes,
                                                            std::span<const SingleValue> values) {
  return dtype == DType::float32 ? compile_typed<float>(nodes, values)
                                 : compile_typed<double>(nodes, values);
}

}  // namespace buropt
