// with_epilogues: matrix products that finish what they began.
//
// The planner's first step. A product whose only reader adds a bias or an array of its own shape to
// it, takes relu of it or multiplies it by relu's slope, becomes one node with that reader
// (matmul_epilogue), and that one with the next: the sums pass through all of it while they are in
// registers. What the graph gives out, or has more readers, stays a node of its own.
//
// A layer norm whose rows' moments the graph computes as well, for cotangents, takes them from
// there.
#pragma once

#include <memory>

#include "graph/graph.h"

namespace buropt {

/// A graph of the same inputs, outputs and constants; the graph itself if there is nothing to join.
std::shared_ptr<const Graph> with_epilogues(std::shared_ptr<const Graph> graph);

}  // namespace buropt
