// What the runs of an engine need besides the program: memory of the call and of each thread.
#pragma once

#include "base/buffer.h"
#include "exec/engine.h"

namespace buropt {

/// What one thread needs to run tiles: its arena and its own table of buffer addresses.
struct Engine::ThreadState {
  Buffer arena;
  Buffer scratch;
  std::vector<Buffer> gathered;  ///< by input: rows picked by idx
  Buffer block_scratch;          ///< of a product of a block of samples
  std::vector<std::byte*> buffers;
  std::vector<const std::int64_t*> picks;  ///< by buffer, as Frame::picks
  std::vector<const std::byte*> sparse;    ///< by buffer, as Frame::sparse
  std::vector<CsrRows<float>> csr32;
  std::vector<CsrRows<double>> csr64;
};

struct Engine::Workspace {
  Buffer shared;
  Buffer scratch;  ///< a part for each thread
  Buffer slots;
  std::vector<Buffer> full_rows;         ///< by FullProduct: the numbers of all samples
  Buffer full_sums;                      ///< of a full batch, one after the other
  Buffer full_scratch;                   ///< of a product of all samples
  std::int64_t block_scratch_bytes = 0;  ///< what a thread needs of ThreadState::block_scratch
  std::vector<std::byte*> buffers;
  std::vector<ThreadState> threads;
  /// By thread: addresses for an instruction that is run on some of a tile's samples.
  std::vector<std::vector<std::byte*>> part_buffers;
  /// By Batch::fixed, then by CSR array: within each tile, the rows by length.
  std::vector<std::vector<std::vector<std::uint16_t>>> orders;
  alignas(kAlignment) std::byte scale[8];
  std::vector<float> registers32;
  std::vector<double> registers64;
  std::vector<std::int64_t> first_task;  ///< by batch, and the total at the end
  std::vector<std::int64_t> tile_rows;   ///< by batch
  /// The last partition: of so many samples.
  std::int64_t partitioned = -1;
  std::pair<std::int64_t, std::int64_t> partition;
};

/// One call.
struct Engine::Run {
  std::span<const std::byte* const> vectors;
  std::span<const Batch> batches;
  int threads;
  const Step* step;  ///< or nullptr
  Workspace& workspace;
  /// The only batch is that of all samples, and full_products_ are run for it.
  bool is_full = false;
  /// Instructions are split among the threads; otherwise the slots are.
  bool splits = true;
  /// There is one batch, in one tile.
  bool is_one_tile = false;

  /// What instructions are to subtract from x.
  double step_size() const { return step != nullptr ? step->size : 0; }
  /// Of an output with these Engine::step_rows_.
  bool steps_at_once(std::int64_t rows) const {
    return step_size() != 0 && (rows == kAnyRows || (is_one_tile && batches[0].count <= rows));
  }
};

}  // namespace buropt
