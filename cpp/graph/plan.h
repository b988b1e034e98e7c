// plan: graph -> program. A program is three flat instruction lists over numbered buffers:
//
//   before   unbatched values that do not depend on the batch; once per call
//   tile     batched values and sums over the batch (accumulators); once per tile of samples
//   after    unbatched values that depend on accumulators; once per batch, when its tiles are
//   summed
//
// Buffers of `before` and `after` lie in one shared arena, those of `tile` in an arena of each
// thread, accumulators in a slot. A buffer's place is reused once its last reader has run; an
// elementwise instruction may write over an operand that dies with it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "graph/graph.h"

namespace buropt {

enum class Where : std::uint8_t { unused, constant, input, output, shared, tile, accumulator };

/// Where a buffer stands: a byte offset into its arena or slot, or the number of the constant,
/// input or output.
struct Place {
  Where where = Where::unused;
  std::int64_t offset = 0;
  std::int64_t row_bytes = 0;  ///< from one sample to the next; 0 where all share the value
};

struct OutputPlan {
  std::int32_t buffer;
  std::int64_t bytes;  ///< of one sample's value where there is one for each
  /// A batched value: copied out of every tile, row by row.
  bool per_sample;
  /// The program writes it where the caller wants it; otherwise it is copied from its buffer.
  bool in_place;
  /// It depends on the batch (for an in-place output: `after` writes it, not `before`).
  bool after;
};

/// A sum over the samples; every slot of a batch has its own.
struct AccumulatorPlan {
  std::int32_t buffer;
  std::int64_t offset;  ///< bytes, in a slot
  std::int64_t size;    ///< elements
};

struct Program {
  std::shared_ptr<const Graph> graph;  ///< keeps the constants alive
  DType dtype = DType::float64;
  std::vector<Instruction> before;
  std::vector<Instruction> tile;
  std::vector<Instruction> after;
  std::vector<Place> places;                ///< by buffer number
  std::vector<std::int32_t> input_buffers;  ///< by input number
  std::vector<OutputPlan> outputs;
  std::vector<AccumulatorPlan> accumulators;
  std::int64_t max_rows = 1;  ///< samples in a tile, at most
  std::int64_t shared_bytes = 0;
  std::int64_t tile_bytes = 0;
  std::int64_t accumulator_bytes = 0;
  std::int64_t scratch_bytes = 0;
  /// Rough number of multiply-adds for one sample, sparse rows not counted.
  std::int64_t work_per_sample = 0;
  /// The same of what runs once for a call or for a batch.
  std::int64_t work_once = 0;
  /// Elements of what all samples share that the tile's instructions read, such as weights.
  std::int64_t shared_elements = 0;
  bool has_per_sample_output = false;

  bool has_batch() const { return !tile.empty() || has_per_sample_output; }
};

/// max_rows 0 chooses the tile from the size of a sample's values and the caches. sparse: inputs of
/// which a tile reads next to nothing.
Program plan(std::shared_ptr<const Graph> graph, std::int64_t max_rows = 0,
             std::span<const std::size_t> sparse = {});

}  // namespace buropt
