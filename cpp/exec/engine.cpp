#include "exec/engine.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/pool.h"

namespace buropt {
namespace {

/// A slot should hold at least this much work (multiply-adds), or threads cost more than they
/// bring.
constexpr std::int64_t kSlotWork = 40000;
constexpr std::int64_t kMaxSlots = 64;
/// All slots of a batch together hold at most this many accumulator bytes, and adding them up at
/// most this share of the work.
constexpr std::int64_t kMaxSlotBytes = 4 << 20;
constexpr std::int64_t kCombineShare = 8;
/// Accumulators longer than this are added up by several threads.
constexpr std::int64_t kParallelCombine = 1 << 15;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

void execute(const std::vector<Instruction>& code, const Frame& frame) {
  for (const Instruction& s : code) s.run(s, frame);
}

/// Whether a row's length seldom tells the next one's.
bool is_irregular(const std::int64_t* row_starts, std::int64_t n) {
  std::int64_t changes = 0;
  for (std::int64_t i = 1; i < n; ++i) {
    changes += row_starts[i + 1] - row_starts[i] != row_starts[i] - row_starts[i - 1];
  }
  return changes > n / 4;
}

template <class T>
void add_into(std::byte* to, const std::byte* from, std::int64_t n) {
  T* a = reinterpret_cast<T*>(to);
  const T* b = reinterpret_cast<const T*>(from);
  for (std::int64_t i = 0; i < n; ++i) a[i] += b[i];
}

}  // namespace

/// What one thread needs to run tiles: its arena and its own table of buffer addresses.
struct Engine::ThreadState {
  Buffer arena;
  Buffer scratch;
  std::vector<Buffer> gathered;  ///< by input: rows picked by idx
  std::vector<std::byte*> buffers;
  std::vector<CsrRows<float>> csr32;
  std::vector<CsrRows<double>> csr64;
};

struct Engine::Workspace {
  Buffer shared;
  Buffer scratch;
  Buffer slots;
  std::vector<std::byte*> buffers;
  std::vector<ThreadState> threads;
  /// By Batch::fixed, then by CSR array: within each tile, the rows by length.
  std::vector<std::vector<std::vector<std::uint16_t>>> orders;
  alignas(kAlignment) std::byte scale[8];
  std::vector<float> registers32;
  std::vector<double> registers64;
};

/// One call's partition.
struct Engine::Run {
  std::span<const std::byte* const> vectors;
  std::span<const Batch> batches;
  std::vector<std::int64_t> first_task;  ///< by batch, and the total at the end
  std::vector<std::int64_t> tile_rows;   ///< by batch
  Workspace& workspace;
};

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
  if (!is_scalar() || is_short()) program_ = plan(graph);
  work_per_sample_ = program_.work_per_sample;
  for (const CsrData& csr : data_.csr) {
    if (data_.n_samples > 0) {
      work_per_sample_ += 4 * csr.row_starts[data_.n_samples] / data_.n_samples;
    }
    irregular_.push_back(is_irregular(csr.row_starts, data_.n_samples));
  }
  workspace_ = new_workspace();
}

Engine::~Engine() = default;

std::unique_ptr<Engine::Workspace> Engine::new_workspace() const {
  auto workspace = std::make_unique<Workspace>();
  if (scalar32_) workspace->registers32 = scalar32_->new_registers();
  if (scalar64_) workspace->registers64 = scalar64_->new_registers();
  workspace->shared = Buffer(at(program_.shared_bytes));
  workspace->scratch = Buffer(at(program_.scratch_bytes));
  workspace->buffers.assign(program_.places.size(), nullptr);
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
  const std::int64_t elements = std::max<std::int64_t>(1, bytes / size_of(program_.dtype));
  std::int64_t slots = std::min(work / kSlotWork, kMaxSlots);
  slots = std::min({slots, kMaxSlotBytes / bytes, work / (kCombineShare * elements)});
  slots = std::max<std::int64_t>(slots, 1);
  const std::int64_t rows =
      std::clamp<std::int64_t>((count + slots - 1) / slots, 1, program_.max_rows);
  return {rows, std::min(slots, (count + rows - 1) / rows)};
}

void Engine::run(std::span<const std::byte* const> vectors, double scale,
                 std::span<const Batch> batches, int threads) const {
  const bool mine = !in_use_.test_and_set(std::memory_order_acquire);
  struct Release {
    std::atomic_flag* flag;
    ~Release() {
      if (flag != nullptr) flag->clear(std::memory_order_release);
    }
  } release{mine ? &in_use_ : nullptr};
  std::unique_ptr<Workspace> own;
  if (!mine) own = new_workspace();
  Workspace& workspace = mine ? *workspace_ : *own;
  if (is_scalar()) {
    for (const Batch& batch : batches) run_scalar(vectors, batch, workspace);
  } else {
    run_tiles(vectors, scale, batches, threads, workspace);
  }
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

void Engine::run_tiles(std::span<const std::byte* const> vectors, double scale,
                       std::span<const Batch> batches, int threads, Workspace& w) const {
  dispatch(program_.dtype, [&](auto zero) {
    const auto typed = static_cast<decltype(zero)>(scale);
    std::memcpy(w.scale, &typed, sizeof(typed));
  });
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    const InputRole& role = inputs_[k];
    std::byte*& buffer = w.buffers[at(program_.input_buffers[k])];
    if (role.kind == InputRole::scale) buffer = w.scale;
    if (role.kind != InputRole::vector) continue;
    // Inputs are only read.
    buffer =
        const_cast<std::byte*>(vectors[at(role.number)]) + role.offset * size_of(program_.dtype);
  }
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    if (program_.outputs[k].in_place) {
      w.buffers[at(program_.outputs[k].buffer)] = output(batches[0], k);
    }
  }
  execute(program_.before, {w.buffers.data(), 1, w.scratch.data()});

  Run run{vectors, batches, {0}, {}, w};
  if (program_.has_batch()) {
    for (const Batch& batch : batches) {
      const auto [rows, slots] = partition(batch.count);
      order_rows(batch, rows, w);
      run.tile_rows.push_back(rows);
      run.first_task.push_back(run.first_task.back() + slots);
    }
    const std::int64_t tasks = run.first_task.back();
    w.slots.reserve(at(tasks * program_.accumulator_bytes));
    const int members = static_cast<int>(std::min<std::int64_t>(tasks, threads));
    prepare_threads(w, members, batches);
    Pool::run(tasks, members,
              [&](std::int64_t task, int thread) { run_slot(run, task, w.threads[at(thread)]); });
  }
  for (std::size_t b = 0; b < batches.size(); ++b) {
    if (program_.has_batch()) combine(run, static_cast<std::int64_t>(b), threads);
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      if (program_.outputs[k].in_place && program_.outputs[k].after) {
        w.buffers[at(program_.outputs[k].buffer)] = output(batches[b], k);
      }
    }
    execute(program_.after, {w.buffers.data(), 1, w.scratch.data()});
    copy_outputs(w.buffers, batches[b], b == 0);
  }
}

/// Sorts, once for a fixed batch, the rows of every tile by length.
void Engine::order_rows(const Batch& batch, std::int64_t rows, Workspace& w) const {
  if (batch.fixed < 0 || data_.csr.empty()) return;
  if (w.orders.size() <= at(batch.fixed)) w.orders.resize(at(batch.fixed) + 1);
  auto& orders = w.orders[at(batch.fixed)];
  if (!orders.empty()) return;
  orders.resize(data_.csr.size());
  for (std::size_t k = 0; k < data_.csr.size(); ++k) {
    if (!irregular_[k]) continue;
    std::vector<std::uint16_t>& order = orders[k];
    order.resize(at(batch.count));
    const auto length = [&](std::int64_t i) {
      const std::int64_t row = batch.idx == nullptr ? batch.first + i : batch.idx[i];
      return data_.csr[k].row_starts[row + 1] - data_.csr[k].row_starts[row];
    };
    for (std::int64_t from = 0; from < batch.count; from += rows) {
      const auto begin = order.begin() + from;
      const auto end = order.begin() + std::min(from + rows, batch.count);
      std::iota(begin, end, std::uint16_t{0});
      std::stable_sort(begin, end, [&](std::uint16_t a, std::uint16_t b) {
        return length(from + a) < length(from + b);
      });
    }
  }
}

void Engine::copy_outputs(std::span<std::byte* const> buffers, const Batch& batch,
                          bool first) const {
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const OutputPlan& plan = program_.outputs[k];
    if (plan.per_sample || (plan.in_place && (plan.after || first))) continue;
    std::memcpy(output(batch, k), buffers[at(plan.buffer)], at(plan.bytes));
  }
}

/// Gives every thread its memory and a copy of the buffer table, before any of them starts: a task
/// must not throw.
void Engine::prepare_threads(Workspace& w, int members, std::span<const Batch> batches) const {
  const bool picks = std::any_of(batches.begin(), batches.end(), [](const Batch& batch) {
    return batch.idx != nullptr && batch.count > 1;
  });
  if (w.threads.size() < at(members)) w.threads.resize(at(members));
  for (std::size_t t = 0; t < at(members); ++t) {
    ThreadState& state = w.threads[t];
    state.arena.reserve(at(program_.tile_bytes));
    state.scratch.reserve(at(program_.scratch_bytes));
    state.gathered.resize(inputs_.size());
    state.csr32.resize(inputs_.size());
    state.csr64.resize(inputs_.size());
    state.buffers = w.buffers;
    for (std::size_t b = 0; b < program_.places.size(); ++b) {
      if (program_.places[b].where == Where::tile) {
        state.buffers[b] = state.arena.data() + program_.places[b].offset;
      }
    }
    for (std::size_t k = 0; picks && k < inputs_.size(); ++k) {
      if (inputs_[k].kind != InputRole::dense_data) continue;
      state.gathered[k].reserve(at(program_.max_rows * row_bytes(inputs_[k])));
    }
  }
}

std::int64_t Engine::row_bytes(const InputRole& role) const {
  return data_.dense[at(role.number)].row_size * size_of(program_.dtype);
}

void Engine::run_slot(const Run& run, std::int64_t task, ThreadState& state) const {
  Workspace& w = run.workspace;
  const auto batch_number = static_cast<std::int64_t>(
      std::upper_bound(run.first_task.begin(), run.first_task.end(), task) -
      run.first_task.begin() - 1);
  const Batch& batch = run.batches[at(batch_number)];
  const std::int64_t slot = task - run.first_task[at(batch_number)];
  const std::int64_t slots =
      run.first_task[at(batch_number) + 1] - run.first_task[at(batch_number)];
  const std::int64_t rows = run.tile_rows[at(batch_number)];
  const std::int64_t tiles = (batch.count + rows - 1) / rows;

  std::byte* accumulators = w.slots.data() + task * program_.accumulator_bytes;
  std::fill_n(accumulators, program_.accumulator_bytes, std::byte{0});
  for (std::size_t b = 0; b < program_.places.size(); ++b) {
    if (program_.places[b].where == Where::accumulator) {
      state.buffers[b] = accumulators + program_.places[b].offset;
    }
  }
  for (std::int64_t tile = slot * tiles / slots; tile < (slot + 1) * tiles / slots; ++tile) {
    const std::int64_t from = tile * rows;
    const std::int64_t n = std::min(rows, batch.count - from);
    bind_rows(run, batch, from, n, state);
    execute(program_.tile, {state.buffers.data(), n, state.scratch.data()});
    if (program_.has_per_sample_output) copy_rows(batch, from, n, state);
  }
}

/// Copies the values of samples from..from+rows-1 to where the caller wants them.
void Engine::copy_rows(const Batch& batch, std::int64_t from, std::int64_t rows,
                       const ThreadState& state) const {
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const OutputPlan& plan = program_.outputs[k];
    if (!plan.per_sample) continue;
    const std::int64_t stride = outputs_[k].row_stride * size_of(program_.dtype);
    const std::byte* row = state.buffers[at(plan.buffer)];
    std::byte* to = output(batch, k) + from * stride;
    for (std::int64_t i = 0; i < rows; ++i, row += plan.bytes, to += stride) {
      std::memcpy(to, row, at(plan.bytes));
    }
  }
}

/// Points the data inputs at samples from..from+n-1 of the batch; picked rows are copied together
/// unless there is only one.
void Engine::bind_rows(const Run& run, const Batch& batch, std::int64_t from, std::int64_t n,
                       ThreadState& state) const {
  const std::int64_t item = size_of(program_.dtype);
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    const InputRole& role = inputs_[k];
    std::byte*& buffer = state.buffers[at(program_.input_buffers[k])];
    if (role.kind == InputRole::weight) {
      buffer = const_cast<std::byte*>(batch.weights) + from * item;
    } else if (role.kind == InputRole::rows) {
      const std::int64_t size = program_.graph->node(program_.graph->inputs[k].node).type.size();
      buffer = const_cast<std::byte*>(run.vectors[at(role.number)]) + from * size * item;
    } else if (role.kind == InputRole::dense_data) {
      const DenseData& data = data_.dense[at(role.number)];
      const std::int64_t bytes = row_bytes(role);
      const std::int64_t* idx = batch.idx == nullptr ? nullptr : batch.idx + from;
      if (idx == nullptr || n == 1) {
        const std::int64_t first = idx == nullptr ? batch.first + from : idx[0];
        buffer = const_cast<std::byte*>(data.values) + first * bytes;
      } else {
        buffer = state.gathered[k].data();
        for (std::int64_t i = 0; i < n; ++i) {
          std::memcpy(buffer + i * bytes, data.values + idx[i] * bytes, at(bytes));
        }
      }
    } else if (role.kind == InputRole::csr_data) {
      const CsrData& data = data_.csr[at(role.number)];
      const auto rows_of = [&](auto& rows) {
        using T = std::remove_cvref_t<decltype(*rows.values)>;
        rows.values = reinterpret_cast<const T*>(data.values);
        rows.columns = data.columns;
        rows.row_starts = data.row_starts;
        rows.n_entries = data.row_starts[data_.n_samples];
        rows.rows = batch.idx == nullptr ? nullptr : batch.idx + from;
        rows.first = batch.idx == nullptr ? batch.first + from : 0;
        rows.n = n;
        rows.order = nullptr;
        if (batch.fixed >= 0 && irregular_[at(role.number)]) {
          rows.order = run.workspace.orders[at(batch.fixed)][at(role.number)].data() + from;
        }
        return reinterpret_cast<std::byte*>(&rows);
      };
      buffer = program_.dtype == DType::float32 ? rows_of(state.csr32[k]) : rows_of(state.csr64[k]);
    }
  }
}

/// Adds a batch's slots into its first one: pairs at distance 1, 2, 4, ...
void Engine::combine(const Run& run, std::int64_t batch, int threads) const {
  Workspace& w = run.workspace;
  const std::int64_t bytes = program_.accumulator_bytes;
  std::byte* first = w.slots.data() + run.first_task[at(batch)] * bytes;
  const std::int64_t slots = run.first_task[at(batch) + 1] - run.first_task[at(batch)];
  const std::int64_t n = bytes / size_of(program_.dtype);
  const std::int64_t parts =
      n > kParallelCombine ? (n + kParallelCombine - 1) / kParallelCombine : 1;
  const auto add_part = [&](std::int64_t part, int) {
    const std::int64_t begin = n * part / parts;
    const std::int64_t length = n * (part + 1) / parts - begin;
    for (std::int64_t distance = 1; distance < slots; distance *= 2) {
      for (std::int64_t slot = 0; slot + distance < slots; slot += 2 * distance) {
        dispatch(program_.dtype, [&](auto zero) {
          using T = decltype(zero);
          const auto shift = begin * static_cast<std::int64_t>(sizeof(T));
          add_into<T>(first + slot * bytes + shift, first + (slot + distance) * bytes + shift,
                      length);
        });
      }
    }
  };
  if (slots > 1) Pool::run(parts, threads, add_part);
  for (std::size_t b = 0; b < program_.places.size(); ++b) {
    if (program_.places[b].where == Where::accumulator) {
      w.buffers[b] = first + program_.places[b].offset;
    }
  }
}

}  // namespace buropt
