// The order in which the nodes of a fused step run.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "graph/fuse.h"

namespace buropt {

std::vector<std::int64_t> in_block_order(const Graph& graph, std::span<const std::int64_t> nodes,
                                         std::span<const std::int32_t> buffer) {
  static const OpId add = find_op("add");
  const auto inputs_of = [&](std::int64_t i) {
    std::vector<std::int32_t> inputs;
    for (const NodeId input : graph.node(static_cast<NodeId>(i)).inputs) {
      inputs.push_back(buffer[static_cast<std::size_t>(input)]);
    }
    return inputs;
  };
  const auto result_of = [&](std::int64_t i) { return buffer[static_cast<std::size_t>(i)]; };
  std::unordered_map<std::int32_t, int> readers;
  std::unordered_set<std::int32_t> made;
  for (const std::int64_t i : nodes) {
    for (const std::int32_t input : inputs_of(i)) ++readers[input];
    made.insert(result_of(i));
  }
  const auto rank = [&](std::int64_t i, std::int64_t last) {
    const OpId id = graph.node(static_cast<NodeId>(i)).op;
    const std::vector<std::int32_t> inputs = inputs_of(i);
    // x + x of what is in memory is not an instruction of a block program.
    if (id == add && inputs[0] == inputs[1] && !made.contains(inputs[0])) return 4;
    if (!op(id).elementwise) return 0;
    if (last < 0) return 1;
    const auto reads = std::count(inputs.begin(), inputs.end(), result_of(last));
    return reads == 0 ? 1 : reads == readers[result_of(last)] ? 3 : 2;
  };
  std::vector<std::int64_t> order;
  std::vector<std::int64_t> waiting(nodes.begin(), nodes.end());
  std::unordered_set<std::int32_t> coming = made;
  while (!waiting.empty()) {
    auto best = waiting.end();
    int best_rank = -1;
    for (auto it = waiting.begin(); it != waiting.end(); ++it) {
      const auto inputs = inputs_of(*it);
      const auto is_coming = [&](std::int32_t b) { return coming.contains(b); };
      if (std::any_of(inputs.begin(), inputs.end(), is_coming)) continue;
      const int found = rank(*it, order.empty() ? -1 : order.back());
      if (found > best_rank) {
        best = it;
        best_rank = found;
      }
    }
    order.push_back(*best);
    coming.erase(result_of(*best));
    waiting.erase(best);
  }
  return order;
}

}  // namespace buropt
