#include "exec/engine.h"

#include <algorithm>
#include <bit>
#include <numeric>

#include "exec/sliced_copy.h"
#include "exec/sparse_copy.h"
#include "exec/workspace.h"
#include "math/finite.h"
#include "math/lanes.h"

namespace buropt {
namespace {

/// A slot should hold at least this much work (multiply-adds), or threads cost more than they
/// bring.
constexpr std::int64_t kSlotWork = 40000;
constexpr std::int64_t kMaxSlots = 64;
/// Every accumulator of a slot pays with this many multiply-adds of the slot's: it is written,
/// read and added up once more than with one slot, and takes a part of the cache. What a tile reads
/// of the weights costs less.
constexpr std::int64_t kCombineShare = 256;
constexpr std::int64_t kReadShare = 32;
/// All slots of a batch together hold at most this many accumulator bytes.
constexpr std::int64_t kMaxSlotBytes = 16 << 20;
/// Samples of a slot, at least, where large products are not made in its tiles.
constexpr std::int64_t kSlotSamples = 1024;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Of longer rows, the stream of entries that an order tears apart costs more than their ends.
constexpr std::int64_t kShortCsrRow = 32;

/// Whether rows are short and a row's length seldom tells the next one's.
bool is_irregular(const std::int64_t* row_starts, std::int64_t n) {
  std::int64_t changes = 0;
  for (std::int64_t i = 1; i < n; ++i) {
    changes += row_starts[i + 1] - row_starts[i] != row_starts[i] - row_starts[i - 1];
  }
  return changes > n / 4 && row_starts[n] < kShortCsrRow * n;
}

}  // namespace

Engine::Engine(std::shared_ptr<const Graph> graph, std::vector<InputRole> inputs,
               std::vector<OutputRole> outputs, Data data)
    : inputs_(std::move(inputs)), outputs_(std::move(outputs)), data_(std::move(data)) {
  BUROPT_ASSERT(inputs_.size() == graph->inputs.size());
  BUROPT_ASSERT(outputs_.size() == graph->outputs.size());
  program_.graph = graph;
  if (!graph->nodes.empty()) program_.dtype = graph->nodes.front().type.dtype;
  if (program_.dtype == DType::float32)
    scalar32_ = ScalarProgram<float>::compile(*graph);
  else
    scalar64_ = ScalarProgram<double>::compile(*graph);
  // Of a long scalar program the plan would only take memory.
  if (!is_scalar() || n_instructions() <= kShort) program_ = plan(graph);
  if (!is_scalar()) {
    if (auto form = with_tables(*graph)) {
      by_tables_ = std::make_unique<ByTables>();
      by_tables_->form = std::move(*form);
    }
  }
  find_picked();
  find_sparse();
  work_per_sample_ = program_.work_per_sample;
  for (const CsrData& csr : data_.csr) {
    if (data_.n_samples > 0) {
      work_per_sample_ += 4 * csr.row_starts[data_.n_samples] / data_.n_samples;
    }
    irregular_.push_back(is_irregular(csr.row_starts, data_.n_samples));
  }
  find_accumulators();
  find_steps();
  find_direct_rows();
  find_full_products();
  for (std::size_t k = 0; k < program_.input_buffers.size(); ++k) {
    if (inputs_[k].kind == InputRole::vector) call_buffers_.push_back(program_.input_buffers[k]);
  }
  for (const OutputPlan& output : program_.outputs) {
    if (output.in_place) call_buffers_.push_back(output.buffer);
  }
  workspace_ = new_workspace();
}

/// A sum that is an output is summed up where the caller wants it.
void Engine::find_accumulators() {
  std::vector<Accumulator*> by_buffer(program_.places.size(), nullptr);
  for (const AccumulatorPlan& plan : program_.accumulators) {
    accumulators_.push_back({plan.buffer, plan.offset, plan.size, -1, true});
  }
  for (Accumulator& a : accumulators_) by_buffer[at(a.buffer)] = &a;
  for (const Instruction& s : program_.tile) {
    if (Accumulator* a = by_buffer[at(s.out)]; a != nullptr) a->needs_zeros = !s.starts_sums;
  }
  direct_.assign(outputs_.size(), false);
  for (std::size_t k = 0; k < program_.outputs.size(); ++k) {
    Accumulator* a = by_buffer[at(program_.outputs[k].buffer)];
    if (a == nullptr || a->output >= 0) continue;
    a->output = static_cast<std::int64_t>(k);
    direct_[k] = true;
  }
  all_direct_ = std::all_of(accumulators_.begin(), accumulators_.end(),
                            [](const Accumulator& a) { return a.output >= 0; });
}

/// Values of each sample that the caller wants in rows without gaps are made there.
void Engine::find_direct_rows() {
  std::vector<bool> taken(program_.places.size(), false);
  for (std::size_t k = 0; k < program_.outputs.size(); ++k) {
    const OutputPlan& plan = program_.outputs[k];
    const bool is_dense = outputs_[k].row_stride * size_of(program_.dtype) == plan.bytes;
    if (!plan.per_sample || !is_dense || taken[at(plan.buffer)]) continue;
    direct_[k] = program_.places[at(plan.buffer)].where == Where::tile;
    taken[at(plan.buffer)] = true;
  }
}

/// Data whose every reader picks the rows itself are not copied together.
void Engine::find_picked() {
  std::vector<bool> by_buffer(program_.places.size(), true);
  for (const Instruction& s : program_.tile) {
    for (std::size_t k = 0; k < s.in.size(); ++k) {
      if (k >= 8 || (s.picks >> k & 1) == 0) by_buffer[at(s.in[k])] = false;
    }
  }
  for (const OutputPlan& output : program_.outputs) by_buffer[at(output.buffer)] = false;
  for (std::size_t k = 0; k < program_.input_buffers.size(); ++k) {
    picked_.push_back(inputs_[k].kind == InputRole::dense_data &&
                      by_buffer[at(program_.input_buffers[k])]);
  }
}

/// Data that are mostly zeros are copied without them, if all their readers can use that.
void Engine::find_sparse() {
  std::vector<std::size_t> inputs;
  sparse_.assign(inputs_.size(), -1);
  for (std::size_t k = 0; k < picked_.size(); ++k) {
    if (!picked_[k]) continue;
    auto copy = sparse_copy(data_.dense[at(inputs_[k].number)], data_.n_samples, program_.dtype);
    if (!copy) continue;
    sparse_[k] = static_cast<std::int64_t>(data_.csr.size());
    copies_.push_back(std::move(*copy));
    data_.csr.push_back(copies_.back().rows());
    inputs.push_back(k);
  }
  if (inputs.empty()) return;
  program_ = plan(program_.graph, 0, inputs);
  for (const Instruction& s : program_.tile) {
    for (const std::size_t k : inputs) {
      if (s.picks != 0 && s.in[0] == program_.input_buffers[k]) program_.work_per_sample -= s.work;
    }
  }
}

std::int64_t Engine::copied_bytes() const {
  return std::accumulate(copies_.begin(), copies_.end(), std::int64_t{0},
                         [](std::int64_t sum, const SparseCopy& c) { return sum + c.bytes(); });
}

std::int64_t Engine::sliced_bytes() const {
  return std::accumulate(data_.csr.begin(), data_.csr.end(), std::int64_t{0},
                         [](std::int64_t sum, const CsrData& csr) {
                           return sum + (csr.sliced ? csr.sliced->bytes() : 0);
                         });
}

Engine::~Engine() = default;

std::unique_ptr<Engine::Workspace> Engine::new_workspace() const {
  auto workspace = std::make_unique<Workspace>();
  if (scalar32_) workspace->registers32 = scalar32_->new_registers();
  if (scalar64_) workspace->registers64 = scalar64_->new_registers();
  workspace->shared = Buffer(at(program_.shared_bytes));
  workspace->scratch = Buffer(at(program_.scratch_bytes));
  workspace->full_rows.resize(full_products_.size());
  workspace->buffers.assign(n_buffers_, nullptr);
  for (std::size_t b = 0; b < program_.places.size(); ++b) {
    const Place& place = program_.places[b];
    if (place.where == Where::shared) {
      workspace->buffers[b] = workspace->shared.data() + place.offset;
    } else if (place.where == Where::constant) {
      // Kernels only write to their result, which is never a constant.
      workspace->buffers[b] =
          const_cast<std::byte*>(program_.graph->constants[at(place.offset)]->data());
    }
  }
  for (std::size_t k = 0; k < program_.input_buffers.size(); ++k) {
    if (inputs_[k].kind == InputRole::scale) {
      workspace->buffers[at(program_.input_buffers[k])] = workspace->scale;
    }
  }
  return workspace;
}

std::size_t Engine::n_instructions() const {
  if (scalar32_) return scalar32_->n_instructions();
  if (scalar64_) return scalar64_->n_instructions();
  return program_.before.size() + program_.tile.size() + program_.after.size();
}

std::pair<std::int64_t, std::int64_t> Engine::partition(std::int64_t count) const {
  const std::int64_t work = count * std::max<std::int64_t>(1, work_per_sample_);
  const std::int64_t bytes = std::max<std::int64_t>(1, program_.accumulator_bytes);
  const std::int64_t price = std::max<std::int64_t>(
      1, kCombineShare * (bytes / size_of(program_.dtype)) + kReadShare * program_.shared_elements);
  std::int64_t slots = std::min(work / kSlotWork, kMaxSlots);
  slots = std::min({slots, kMaxSlotBytes / bytes, work / price, count});
  // A power of two deals them out evenly to two, four, ... threads.
  slots = static_cast<std::int64_t>(
      std::bit_floor(static_cast<std::uint64_t>(std::max<std::int64_t>(slots, 1))));
  // Tiles as even as possible.
  const std::int64_t in_slot = ceil_div(count, slots);
  std::int64_t rows = std::max<std::int64_t>(
      1, ceil_div(in_slot, std::max<std::int64_t>(1, ceil_div(in_slot, program_.max_rows))));
  // Whole blocks of samples fill the registers.
  constexpr std::int64_t kBlock = 64;
  if (rows > kBlock) rows = std::min(program_.max_rows, ceil_div(rows, kBlock) * kBlock);
  return {rows, std::clamp<std::int64_t>(ceil_div(count, rows), 1, slots)};
}

/// The engine that takes these batches by tables, if one does.
const Engine* Engine::by_tables(std::span<const std::byte* const> vectors,
                                std::span<const Batch> batches) const {
  if (by_tables_ == nullptr) return nullptr;
  const TableForm& form = by_tables_->form;
  for (const Batch& batch : batches) {
    if (batch.count < form.least_samples) return nullptr;
  }
  for (const std::int32_t k : form.inputs) {
    const InputRole& role = inputs_[at(k)];
    const std::int64_t size = form.graph->node(form.graph->inputs[at(k)].node).type.size();
    const bool is_finite = dispatch(program_.dtype, [&](auto zero) {
      using T = decltype(zero);
      return role.kind == InputRole::vector &&
             all_finite(reinterpret_cast<const T*>(vectors[at(role.number)]) + role.offset, size);
    });
    if (!is_finite) return nullptr;
  }
  std::call_once(by_tables_->is_made, [&] {
    by_tables_->engine = std::make_unique<Engine>(form.graph, inputs_, outputs_, data_);
  });
  return by_tables_->engine.get();
}

/// By the number of samples alone, so that programs with the same losses add them up alike.
std::pair<std::int64_t, std::int64_t> Engine::full_partition() const {
  const std::int64_t n = std::max<std::int64_t>(1, data_.n_samples);
  if (full_products_.empty()) return partition(n);
  if (block_rows_ != 0) return {std::min(program_.max_rows, block_rows_), ceil_div(n, block_rows_)};
  const std::int64_t bytes = std::max<std::int64_t>(1, full_slot_bytes_);
  const std::int64_t slots = std::min({n / kSlotSamples, kMaxSlots, kMaxSlotBytes / bytes});
  return {program_.max_rows, std::clamp<std::int64_t>(slots, 1, ceil_div(n, program_.max_rows))};
}

void Engine::run(std::span<const std::byte* const> vectors, double scale,
                 std::span<const Batch> batches, int threads, const Step* step,
                 Workspace* own) const {
  if (const Engine* engine = by_tables(vectors, batches)) {
    return engine->run(vectors, scale, batches, threads, step);
  }
  const bool is_mine = own == nullptr && !in_use_.test_and_set(std::memory_order_acquire);
  struct Release {
    std::atomic_flag* flag;
    ~Release() {
      if (flag != nullptr) flag->clear(std::memory_order_release);
    }
  } release{is_mine ? &in_use_ : nullptr};
  std::unique_ptr<Workspace> another;
  if (is_mine) own = workspace_.get();
  if (own == nullptr) own = (another = new_workspace()).get();
  Workspace& workspace = *own;
  Run run{vectors, batches, threads, step, workspace, is_full(batches)};
  if (is_scalar()) {
    for (const Batch& batch : batches) run_scalar(vectors, batch, workspace);
  } else {
    run_tiles(run, scale);
  }
  if (step != nullptr) finish_step(run);
}

std::byte* Engine::output(const Batch& batch, std::size_t k) const {
  return batch.outputs[at(outputs_[k].vector)] + outputs_[k].offset * size_of(program_.dtype);
}

void Engine::run_scalar(std::span<const std::byte* const> vectors, const Batch& batch,
                        Workspace& workspace) const {
  dispatch(program_.dtype, [&](auto zero) {
    using T = decltype(zero);
    std::array<const T*, 16> in_small;
    std::array<T*, 16> out_small;
    std::vector<const T*> in_large(inputs_.size() > 16 ? inputs_.size() : 0);
    std::vector<T*> out_large(outputs_.size() > 16 ? outputs_.size() : 0);
    const T** in = in_large.empty() ? in_small.data() : in_large.data();
    T** out = out_large.empty() ? out_small.data() : out_large.data();
    for (std::size_t k = 0; k < inputs_.size(); ++k) {
      in[k] = reinterpret_cast<const T*>(vectors[at(inputs_[k].number)]) + inputs_[k].offset;
    }
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      out[k] = reinterpret_cast<T*>(output(batch, k));
    }
    if constexpr (std::is_same_v<T, float>)
      scalar32_->run(in, out, workspace.registers32);
    else
      scalar64_->run(in, out, workspace.registers64);
  });
}

}  // namespace buropt
