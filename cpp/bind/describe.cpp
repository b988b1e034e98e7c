#include "bind/describe.h"

#include <algorithm>
#include <map>
#include <string>

namespace nb = nanobind;

namespace buropt {
namespace {

/// How often each primitive is run; one that only renames its operand is not.
nb::dict count_primitives(const Graph& graph) {
  std::map<std::string, std::int64_t> counts;
  for (const Node& node : graph.nodes) {
    if (node.op != kNoOp && !op(node.op).alias) ++counts[std::string(op(node.op).name)];
  }
  nb::dict d;
  for (const auto& [name, count] : counts) d[name.c_str()] = count;
  return d;
}

}  // namespace

nb::dict describe(const Engine& engine) {
  const Program& p = engine.program();
  const auto [tile, slots] = engine.full_partition();
  std::size_t constants = 0;
  for (const auto& values : p.graph->constants) constants += values->size();
  nb::dict stages;
  stages["before"] = p.before.size();
  stages["tile"] = p.tile.size();
  stages["after"] = p.after.size();
  nb::dict d;
  d["nodes"] = p.graph->nodes.size();
  d["instructions"] = engine.n_instructions();
  d["executor"] = engine.is_scalar() ? "scalar" : "tile";
  d["tile"] = tile;
  d["slots"] = slots;
  d["arena_bytes"] = p.shared_bytes + p.tile_bytes;
  d["accumulator_bytes"] = p.accumulator_bytes;
  d["scratch_bytes"] = p.scratch_bytes;
  d["constant_bytes"] = constants;
  d["copied_bytes"] = engine.copied_bytes();
  d["sliced_bytes"] = engine.sliced_bytes();
  d["work_per_sample"] = p.work_per_sample;
  d["table_samples"] = engine.table_samples();
  d["stages"] = stages;
  d["primitives"] = count_primitives(*p.graph);
  return d;
}

}  // namespace buropt
