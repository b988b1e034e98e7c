// SingleProgram: several elementwise instructions over one element. Each of its values is a number
// in a register of the scalar executor, where a kernel would walk through an array of one.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "ops/op.h"

namespace buropt {

/// An elementwise instruction: operands and result by the caller's numbers.
struct SingleNode {
  const Op* op;
  std::vector<std::int32_t> in;
  std::int32_t out;
  std::int64_t number;
};

/// An operand or a result that lies in memory.
struct SingleValue {
  std::int32_t operand;  ///< the caller's number
  std::int32_t buffer;
  std::int64_t offset;  ///< bytes
};

class SingleProgram {
 public:
  virtual ~SingleProgram() = default;

  /// Nodes in an order in which they may run; null if one of them has no scalar instruction.
  static std::shared_ptr<const SingleProgram> compile(DType dtype,
                                                      std::span<const SingleNode> nodes,
                                                      std::span<const SingleValue> values);

  /// The frame's scratch memory has a number's room for each of the caller's operands.
  virtual void run(const Frame& frame) const noexcept = 0;
};

}  // namespace buropt
