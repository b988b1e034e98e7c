// Scalar executor: small unbatched graphs, unrolled to single numbers.
//
// Every element of every node is a register; reshapes, slices and the like are only other names
// for registers. What remains is a list of scalar instructions that jump from one to the next.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "graph/graph.h"
#include "ops/scalar_code.h"

namespace buropt {

template <class T>
class ScalarProgram {
 public:
  /// The program of an unbatched graph, or nothing when it is batched or unrolls to too much.
  static std::optional<ScalarProgram> compile(const Graph& graph);

  /// Registers with the constants in place; one set per concurrent run.
  std::vector<T> new_registers() const { return initial_; }

  /// inputs by graph input, outputs by graph output.
  void run(const T* const* inputs, T* const* outputs, std::vector<T>& registers) const noexcept;

  /// For who keeps the numbers in the registers: where input k begins (-1: nobody reads it), where
  /// the first number of output k is, and a run between the two.
  std::int32_t input_register(std::int32_t k) const noexcept;
  std::int32_t output_register(std::int32_t k) const noexcept;
  void run_registers(T* registers) const noexcept;

  std::size_t n_instructions() const { return code_.size(); }

 private:
  struct Load {
    std::int32_t input;
    std::int32_t first;
    std::int64_t count;
  };
  struct Store {
    std::int32_t output;
    std::vector<std::int32_t> registers;
  };
  template <class>
  friend class ScalarCompiler;

  ScalarCode<T> code_;
  std::vector<T> initial_;
  std::vector<Load> loads_;
  std::vector<Store> stores_;
};

extern template class ScalarProgram<float>;
extern template class ScalarProgram<double>;

}  // namespace buropt
