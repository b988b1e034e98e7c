#include "ops/blocks.h"

#include <algorithm>

namespace buropt {

const BlockOp* find_block_op(std::string_view name) {
  static const std::vector<BlockOp> ops = [] {
    std::vector<BlockOp> all = arithmetic_block_ops();
    for (const BlockOp& op : power_block_ops()) all.push_back(op);
    return all;
  }();
  const auto found =
      std::find_if(ops.begin(), ops.end(), [&](const BlockOp& op) { return op.name == name; });
  return found == ops.end() ? nullptr : &*found;
}

}  // namespace buropt
