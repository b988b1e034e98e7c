// with_memories: attention whose cotangent does not begin anew.
//
// A step of the planner. Where a graph computes attention and carries a cotangent back through it,
// both read one more node, which holds what they have in common (attention_memory).
#pragma once

#include <memory>

#include "graph/graph.h"

namespace buropt {

/// A graph of the same inputs, outputs and constants; the graph itself if nothing is in common.
std::shared_ptr<const Graph> with_memories(std::shared_ptr<const Graph> graph);

}  // namespace buropt
