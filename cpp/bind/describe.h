// What is told of a compiled program.
#pragma once

#include <nanobind/nanobind.h>

#include "exec/engine.h"

namespace buropt {

/// Sizes, executor, partition of a batch of all samples, and instructions by stage and primitive.
nanobind::dict describe(const Engine& engine);

}  // namespace buropt
