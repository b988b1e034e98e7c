// fuse: which instructions run together, chunk by chunk.
//
// A chain of elementwise instructions over long arrays would read and write each intermediate value
// in main memory, and one over the samples of a tile in the cache. Fused, all of them handle one
// chunk of the arrays before the next, and what only they use never leaves the first-level cache. A
// sum of all elements and the sum of shifted arrays (slices_vjp) may end a chain; contiguous slices
// are read where they lie.
#pragma once

#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "graph/graph.h"

namespace buropt {

/// Nodes that run as one instruction: a single one, or several fused.
struct Step {
  std::vector<std::int64_t> nodes;
  bool fused = false;
};

/// A buffer that is part of another one, `offset` elements from its start.
struct View {
  std::int32_t source;
  std::int64_t offset;
};

struct FusedSteps {
  std::vector<Step> steps;
  /// Slices that no instruction makes, by buffer.
  std::unordered_map<std::int32_t, View> views;
};

/// order: nodes in the order in which they run; part: which part of the program each belongs to,
/// since only neighbours of one part may be fused; buffer: by node.
FusedSteps fuse(const Graph& graph, std::span<const std::int64_t> order,
                std::span<const std::uint8_t> part, std::span<const std::int32_t> buffer);

/// Nodes of a fused step in an order in which each comes, if it can, behind the one whose result it
/// reads, for that result is then in registers: best if nobody else reads it. Sums come last.
std::vector<std::int64_t> in_block_order(const Graph& graph, std::span<const std::int64_t> nodes,
                                         std::span<const std::int32_t> buffer);

/// The instruction of a fused step. By buffer, is_local: whether only this step uses it; is_final:
/// whether it is a result that no instruction reads.
Instruction lower_fused(const Graph& graph, const Step& step, std::span<const std::int32_t> buffer,
                        const std::unordered_map<std::int32_t, View>& views,
                        const std::vector<bool>& is_local, const std::vector<bool>& is_final);

}  // namespace buropt
