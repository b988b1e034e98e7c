// BlockProgram: several elementwise instructions, block by block, their values in registers as far
// as possible (ops/blocks.h).
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "base/dtype.h"
#include "ops/blocks.h"

namespace buropt {

/// Where a block program finds an operand, by the number that its caller gives it.
enum class OperandKind : std::uint8_t {
  array,   ///< an element for each
  number,  ///< one element for all
};

/// Whether a result is wanted in memory.
enum class Kept : std::uint8_t {
  no,
  yes,
  streamed,  ///< past the caches, where its place allows it; finish_streams() is the caller's
};

/// One elementwise instruction: operands and result by the caller's numbers.
struct BlockNode {
  const BlockOp* op;
  std::vector<std::int32_t> in;
  std::int32_t out;
  std::int32_t number;
  Kept kept;
};

class BlockProgram {
 public:
  virtual ~BlockProgram() = default;

  /// Nodes in an order in which they may run. kinds: by the caller's numbers; results are arrays.
  static std::shared_ptr<const BlockProgram> compile(DType dtype, std::span<const BlockNode> nodes,
                                                     std::span<const OperandKind> kinds);

  virtual std::int64_t block() const = 0;
  virtual std::int64_t scratch_bytes() const = 0;
  /// operands: the memory of each of the caller's numbers. The last of n elements, at least a
  /// block, may be computed twice; nothing that is written may be read before.
  virtual void run(std::byte* const* operands, std::int64_t n,
                   std::byte* scratch) const noexcept = 0;
};

}  // namespace buropt
