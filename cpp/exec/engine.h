// Engine: a program bound to data, run over batches by a thread pool.
//
// A batch is cut into slots by its size and the program alone; a slot's samples run in tiles, in
// order, into the slot's accumulators; the slots of a batch are added along a fixed binary tree.
// The threads only decide who works on which slot, so every thread count gives the same bits. A
// batch of few slots is worked on by all threads together, each computing a part of an instruction.
#pragma once

#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "exec/scalar.h"
#include "graph/plan.h"
#include "graph/tables.h"
#include "math/csr.h"

namespace buropt {

/// What a graph input stands for.
struct InputRole {
  /// rows: an array that the call brings, one row per sample of the batch.
  enum Kind { vector, rows, dense_data, csr_data, scale, weight };
  Kind kind = vector;
  std::int32_t number = 0;  ///< which vector or data array
  std::int64_t offset = 0;  ///< element of the vector at which this input begins
};

/// Where a graph output goes.
struct OutputRole {
  std::int32_t vector = 0;
  std::int64_t offset = 0;
  /// Of a value per sample: elements from one row to the next.
  std::int64_t row_stride = 0;
};

class SlicedCopy;
template <class T>
class SlicedMatrix;

/// Data arrays, one row per sample; the memory belongs to the caller.
struct DenseData {
  const std::byte* values = nullptr;
  std::int64_t row_size = 0;  ///< elements
};
struct CsrData {
  const std::byte* values = nullptr;  ///< nullptr: all are 1
  const std::int32_t* columns = nullptr;
  const std::int64_t* row_starts = nullptr;
  /// What the engines over these rows share; nullptr: an engine makes its own.
  std::shared_ptr<SlicedCopy> sliced = nullptr;
};
struct Data {
  std::int64_t n_samples = 0;
  std::vector<DenseData> dense;
  std::vector<CsrData> csr;
};

/// Samples of one objective: rows first..first+count-1, or those that idx lists.
struct Batch {
  /// A number of its own for a batch that is the same rows in every call; -1 for any other.
  std::int64_t fixed = -1;
  const std::int64_t* idx = nullptr;
  std::int64_t first = 0;
  std::int64_t count = 0;
  const std::byte* weights = nullptr;  ///< one per listed sample
  std::vector<std::byte*> outputs;     ///< by vector number of OutputRole
};

/// A step of gradient descent in place, x -= size * gradient, by a program whose outputs are the
/// parts of the gradient. The batch's memory for it holds some of them afterwards.
struct Step {
  std::byte* x;           ///< the call's only vector
  std::int64_t dim;       ///< its elements
  double size;            ///< a number of the program's dtype
  std::int32_t gradient;  ///< which vector of the batch's outputs
};

struct SparseCopy;

class Engine {
 public:
  Engine(std::shared_ptr<const Graph> graph, std::vector<InputRole> inputs,
         std::vector<OutputRole> outputs, Data data);
  ~Engine();

  const Program& program() const { return program_; }
  /// Of the data, beside what the caller has.
  std::int64_t copied_bytes() const;
  /// From so many samples on, a batch is taken by tables (graph/tables.h); 0: none is.
  std::int64_t table_samples() const { return by_tables_ ? by_tables_->form.least_samples : 0; }
  /// The same of what is shared with other engines, as far as it has been needed by now.
  std::int64_t sliced_bytes() const;
  bool is_scalar() const { return scalar32_ || scalar64_; }
  /// Over before another thread could make use of the time, for so many samples.
  bool is_short(std::int64_t count) const {
    return is_scalar() ? n_instructions() <= kShort
                       : program_.work_once + count * work_per_sample_ <= kShortWork;
  }
  std::size_t n_instructions() const;

  /// The memory of a run.
  struct Workspace;
  std::unique_ptr<Workspace> new_workspace() const;

  /// Evaluates the program on every batch. vectors: pointers in the program's dtype; scale: the
  /// value of the input of that role; step: taken at the end, of a single batch. Thread-safe. own:
  /// memory that nobody else uses meanwhile; nullptr: the engine finds some, for which it has to
  /// wait until all that was stored before is in the cache.
  void run(std::span<const std::byte* const> vectors, double scale, std::span<const Batch> batches,
           int threads, const Step* step = nullptr, Workspace* own = nullptr) const;

  /// The partition of a batch of this many samples: (samples in a tile, slots).
  std::pair<std::int64_t, std::int64_t> partition(std::int64_t count) const;
  /// That of the batch of all samples.
  std::pair<std::int64_t, std::int64_t> full_partition() const;

 private:
  static constexpr std::size_t kShort = 4096;
  static constexpr std::int64_t kShortWork = 1 << 15;
  static constexpr std::int64_t kAnyRows = std::numeric_limits<std::int64_t>::max();
  struct ThreadState;
  struct Run;

  /// A sum over the samples, and the output that it is; where there is none, -1.
  struct Accumulator {
    std::int32_t buffer;
    std::int64_t offset;  ///< bytes, in a slot
    std::int64_t size;    ///< elements
    std::int64_t output;
    bool needs_zeros;  ///< its instruction adds from the first tile on
    /// A full batch has it from one of the FullProducts, and no sums of slots.
    bool is_full_sum = false;
    std::int64_t full_offset = 0;  ///< the same as `offset`, of a full batch
  };

  /// An instruction of the tile that a full batch runs for all samples at once, by copies of
  /// the sparse data: before its tiles the rows times a vector, after them sums over the rows.
  struct FullProduct {
    bool is_sum;
    std::size_t csr;      ///< which array
    std::int64_t width;   ///< of its rows
    std::int32_t vector;  ///< buffer of the vector, or of the sums
    std::int32_t rows;    ///< buffer of the samples' numbers, where a tile finds or leaves its own
    /// A sum that every slot makes of its own samples, a block of the data.
    bool is_by_blocks;
  };

  const Engine* by_tables(std::span<const std::byte* const> vectors,
                          std::span<const Batch> batches) const;
  void find_accumulators();
  void find_steps();
  std::int64_t output_size(std::size_t k) const;
  void finish_step(const Run& run) const;
  void find_direct_rows();
  void find_picked();
  void find_sparse();
  void find_full_products();
  bool is_full(std::span<const Batch> batches) const;
  template <class T>
  void multiply_full(const Run& run, const SlicedMatrix<T>& matrix, const std::byte* x,
                     std::byte* z) const;
  void run_full_dots(const Run& run) const;
  void run_full_sums(const Run& run) const;
  void run_block_sums(const Run& run, std::int64_t slot, ThreadState& state) const;
  void run_scalar(std::span<const std::byte* const> vectors, const Batch& batch,
                  Workspace& workspace) const;
  void run_tiles(Run& run, double scale) const;
  void bind_vectors(const Run& run, double scale) const;
  std::int64_t cut(const Run& run) const;
  void prepare_threads(const Run& run, int members) const;
  void new_thread(const Workspace& workspace, ThreadState& state) const;
  std::int64_t row_bytes(const InputRole& role) const;
  const std::byte* csr_rows(const Run& run, const Batch& batch, std::int64_t from, std::int64_t n,
                            std::size_t input, std::int64_t number, ThreadState& state) const;
  void execute(const std::vector<Instruction>& code, const Run& run, const Frame& frame) const;
  void take_rows(const Instruction& s, std::int64_t part, const Run& run, Frame& frame) const;
  std::int64_t slot_bytes(const Run& run) const;
  std::byte* sums(const Run& run, std::int64_t batch, std::int64_t slot,
                  const Accumulator& a) const;
  void run_slot(const Run& run, std::int64_t task, ThreadState& state) const;
  void bind_rows(const Run& run, const Batch& batch, std::int64_t from, std::int64_t rows,
                 ThreadState& state) const;
  void combine(const Run& run, std::int64_t batch) const;
  void order_rows(const Batch& batch, std::int64_t rows, Workspace& workspace) const;
  void copy_rows(const Batch& batch, std::int64_t from, std::int64_t rows,
                 const ThreadState& state) const;
  void copy_outputs(std::span<std::byte* const> buffers, const Batch& batch, bool first) const;
  std::byte* output(const Batch& batch, std::size_t k) const;
  std::byte* made_at(const Run& run, const Batch& batch, std::size_t k) const;

  Program program_;
  std::vector<InputRole> inputs_;
  std::vector<OutputRole> outputs_;
  Data data_;
  std::int64_t work_per_sample_ = 0;
  std::vector<Accumulator> accumulators_;
  /// By output: a batch of up to so many samples in one tile, or with kAnyRows any batch, may have
  /// it subtracted from x where it is made.
  std::vector<std::int64_t> step_rows_;
  std::vector<std::size_t> step_order_;     ///< outputs with step_rows, as they lie in x
  std::vector<bool> direct_;                ///< by output: it is made where the caller wants it
  bool all_direct_ = false;                 ///< so is every accumulator
  std::vector<std::int32_t> call_buffers_;  ///< whose addresses change from call to call
  std::vector<bool> picked_;  ///< by input: its rows are read where they lie in the data
  std::vector<SparseCopy> copies_;
  std::vector<std::int64_t> sparse_;  ///< by input: which CSR array is a copy of it, or -1
  std::vector<FullProduct> full_products_;
  std::vector<Instruction> full_tile_;  ///< the tile of a full batch, if there are such products
  std::int64_t block_rows_ = 0;       ///< samples in a slot of a full batch; 0: it does not matter
  std::int64_t full_slot_bytes_ = 0;  ///< of its accumulators in a slot
  std::int64_t full_sum_bytes_ = 0;   ///< of those that have none
  std::size_t n_buffers_ = 0;         ///< of the program and of full_products_
  /// By CSR array: its rows are short, and their lengths vary so much that an order pays.
  std::vector<bool> irregular_;
  std::optional<ScalarProgram<float>> scalar32_;
  std::optional<ScalarProgram<double>> scalar64_;

  /// For large batches, another form of the same graph; made when the first one comes.
  struct ByTables {
    TableForm form;
    std::once_flag is_made;
    std::unique_ptr<const Engine> engine;
  };
  std::unique_ptr<ByTables> by_tables_;

  /// The workspace of the usual, single caller; others make their own.
  std::unique_ptr<Workspace> workspace_;
  mutable std::atomic_flag in_use_ = ATOMIC_FLAG_INIT;
};

}  // namespace buropt
