// The tiles of a call: dealt out to slots and threads, run, and their sums brought together.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "base/pool.h"
#include "exec/workspace.h"
#include "math/lanes.h"

namespace buropt {
namespace {

/// An instruction of less work (multiply-adds) is over before other threads could help.
constexpr std::int64_t kSplitWork = 1 << 18;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// Copies the rows that idx lists together.
void gather_rows(const std::byte* from, const std::int64_t* idx, std::int64_t n, std::int64_t bytes,
                 std::byte* to) {
  const auto copy = [&](auto size) {
    for (std::int64_t i = 0; i < n; ++i) std::memcpy(to + i * size, from + idx[i] * size, at(size));
  };
  // A number for each sample, such as a label, is not worth a call.
  if (bytes == sizeof(double))
    copy(std::integral_constant<std::int64_t, sizeof(double)>());
  else if (bytes == sizeof(float))
    copy(std::integral_constant<std::int64_t, sizeof(float)>());
  else
    copy(bytes);
}

}  // namespace

void Engine::run_tiles(Run& run, double scale) const {
  Workspace& w = run.workspace;
  const std::span<const Batch>& batches = run.batches;  // a copy would wait for its two halves
  const int threads = run.threads;
  w.scratch.reserve(at(program_.scratch_bytes * threads));
  while (w.part_buffers.size() < at(threads)) w.part_buffers.emplace_back(n_buffers_);
  bind_vectors(run, scale);
  execute(program_.before, run, {w.buffers.data(), 1, w.scratch.data()});
  if (program_.has_batch()) {
    if (run.is_full) run_full_dots(run);
    const std::int64_t tasks = cut(run);
    run.splits = 2 * tasks <= threads;
    run.is_one_tile = tasks == 1 && batches[0].count <= w.tile_rows[0];
    const int members = run.splits ? 1 : static_cast<int>(std::min<std::int64_t>(tasks, threads));
    prepare_threads(run, members);
    const auto work = [&](std::int64_t task, int thread) {
      run_slot(run, task, w.threads[at(thread)]);
    };
    Pool::run(tasks, members, work);
    if (run.is_full) run_full_sums(run);
  }
  run.splits = true;
  for (std::size_t b = 0; b < batches.size(); ++b) {
    if (program_.has_batch()) combine(run, static_cast<std::int64_t>(b));
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      if (program_.outputs[k].in_place && program_.outputs[k].after) {
        w.buffers[at(program_.outputs[k].buffer)] = made_at(run, batches[b], k);
      }
    }
    Frame frame{w.buffers.data(), 1, w.scratch.data()};
    frame.step = run.step_size();
    execute(program_.after, run, frame);
    copy_outputs(w.buffers, batches[b], b == 0);
  }
}

/// Points the buffers that all samples share at the call's vectors and outputs.
void Engine::bind_vectors(const Run& run, double scale) const {
  Workspace& w = run.workspace;
  dispatch(program_.dtype, [&](auto zero) {
    const auto typed = static_cast<decltype(zero)>(scale);
    std::memcpy(w.scale, &typed, sizeof(typed));
  });
  for (std::size_t k = 0; k < inputs_.size(); ++k) {
    const InputRole& role = inputs_[k];
    if (role.kind != InputRole::vector) continue;
    // Inputs are only read.
    w.buffers[at(program_.input_buffers[k])] =
        const_cast<std::byte*>(run.vectors[at(role.number)]) +
        role.offset * size_of(program_.dtype);
  }
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    if (program_.outputs[k].in_place) {
      w.buffers[at(program_.outputs[k].buffer)] = output(run.batches[0], k);
    }
  }
}

/// Cuts the batches into slots, and says how many there are.
std::int64_t Engine::cut(const Run& run) const {
  Workspace& w = run.workspace;
  w.first_task.assign(1, 0);
  w.tile_rows.clear();
  for (const Batch& batch : run.batches) {
    if (!run.is_full && w.partitioned != batch.count) {
      w.partition = partition(batch.count);
      w.partitioned = batch.count;
    }
    const auto [rows, slots] = run.is_full ? full_partition() : w.partition;
    order_rows(batch, rows, w);
    w.tile_rows.push_back(rows);
    w.first_task.push_back(w.first_task.back() + slots);
  }
  const std::int64_t tasks = w.first_task.back();
  const auto direct = all_direct_ ? static_cast<std::int64_t>(run.batches.size()) : 0;
  w.slots.reserve(at((tasks - direct) * slot_bytes(run)));
  return tasks;
}

/// Gives every thread its memory and its table of buffers, before any of them starts: a task must
/// not throw.
void Engine::prepare_threads(const Run& run, int members) const {
  Workspace& w = run.workspace;
  const bool picks = std::any_of(run.batches.begin(), run.batches.end(), [](const Batch& batch) {
    return batch.idx != nullptr && batch.count > 1;
  });
  if (w.threads.size() < at(members)) w.threads.resize(at(members));
  for (std::size_t t = 0; t < at(members); ++t) {
    ThreadState& state = w.threads[t];
    if (state.buffers.empty()) new_thread(w, state);
    if (run.is_full) state.block_scratch.reserve(at(w.block_scratch_bytes));
    for (const std::int32_t b : call_buffers_) state.buffers[at(b)] = w.buffers[at(b)];
    // A slot that is alone runs its instructions on all threads, in the scratch memory of the call.
    if (!run.splits) state.scratch.reserve(at(program_.scratch_bytes));
    for (std::size_t k = 0; picks && k < inputs_.size(); ++k) {
      if (inputs_[k].kind != InputRole::dense_data || picked_[k]) continue;
      state.gathered[k].reserve(at(program_.max_rows * row_bytes(inputs_[k])));
    }
  }
}

void Engine::new_thread(const Workspace& w, ThreadState& state) const {
  state.arena.reserve(at(program_.tile_bytes));
  state.gathered.resize(inputs_.size());
  state.csr32.resize(inputs_.size());
  state.csr64.resize(inputs_.size());
  state.picks.assign(n_buffers_, nullptr);
  state.sparse.assign(n_buffers_, nullptr);
  state.buffers = w.buffers;
  for (std::size_t b = 0; b < program_.places.size(); ++b) {
    if (program_.places[b].where == Where::tile) {
      state.buffers[b] = state.arena.data() + program_.places[b].offset;
    }
  }
}

void Engine::execute(const std::vector<Instruction>& code, const Run& run,
                     const Frame& frame) const {
  for (const Instruction& s : code) {
    const bool is_shared = run.splits && run.threads > 1 && (s.splits || s.splits_rows) &&
                           s.work * frame.rows >= kSplitWork;
    if (!is_shared) {
      s.run(s, frame);
      continue;
    }
    Pool::run(run.threads, run.threads, [&](std::int64_t part, int) {
      Frame own = frame;
      own.scratch += part * program_.scratch_bytes;
      if (s.splits) {
        own.part = static_cast<std::int32_t>(part);
        own.parts = run.threads;
      } else {
        take_rows(s, part, run, own);
      }
      s.run(s, own);
    });
  }
}

/// Narrows the frame to a thread's share of the samples.
void Engine::take_rows(const Instruction& s, std::int64_t part, const Run& run,
                       Frame& frame) const {
  const std::int64_t first = part_begin(frame.rows, run.threads, part);
  std::vector<std::byte*>& buffers = run.workspace.part_buffers[at(part)];
  const auto move = [&](std::int32_t b) {
    buffers[at(b)] = frame.buffers[b] + first * program_.places[at(b)].row_bytes;
  };
  move(s.out);
  for (const std::int32_t b : s.in) move(b);
  frame.buffers = buffers.data();
  frame.rows = part_begin(frame.rows, run.threads, part + 1) - first;
}

/// Where an output is made: where the caller wants it, or in the part of x that it is subtracted
/// from.
std::byte* Engine::made_at(const Run& run, const Batch& batch, std::size_t k) const {
  if (!run.steps_at_once(step_rows_[k])) return output(batch, k);
  return run.step->x + outputs_[k].offset * size_of(program_.dtype);
}

/// Where a slot of a batch sums up.
std::byte* Engine::sums(const Run& run, std::int64_t batch, std::int64_t slot,
                        const Accumulator& a) const {
  if (slot == 0 && a.output >= 0) return made_at(run, run.batches[at(batch)], at(a.output));
  Workspace& w = run.workspace;
  if (run.is_full && a.is_full_sum) return w.full_sums.data() + a.full_offset;
  const std::int64_t direct = all_direct_ ? batch + 1 : 0;
  const std::int64_t place = w.first_task[at(batch)] + slot - direct;
  return w.slots.data() + place * slot_bytes(run) + (run.is_full ? a.full_offset : a.offset);
}

void Engine::run_slot(const Run& run, std::int64_t task, ThreadState& state) const {
  Workspace& w = run.workspace;
  const auto batch_number = static_cast<std::int64_t>(
      std::upper_bound(w.first_task.begin(), w.first_task.end(), task) - w.first_task.begin() - 1);
  const Batch& batch = run.batches[at(batch_number)];
  const std::int64_t slot = task - w.first_task[at(batch_number)];
  const std::int64_t slots = w.first_task[at(batch_number) + 1] - w.first_task[at(batch_number)];
  const std::int64_t rows = w.tile_rows[at(batch_number)];
  for (const Accumulator& a : accumulators_) {
    if (run.is_full && a.is_full_sum) continue;
    state.buffers[at(a.buffer)] = sums(run, batch_number, slot, a);
    if (!a.needs_zeros) continue;
    std::fill_n(state.buffers[at(a.buffer)], a.size * size_of(program_.dtype), std::byte{0});
  }
  std::byte* scratch = run.splits ? w.scratch.data() : state.scratch.data();
  // Divisions take a while, and a small batch has one tile.
  const std::int64_t tiles = batch.count <= rows ? 1 : ceil_div(batch.count, rows);
  std::int64_t first = slots == 1 ? 0 : slot * tiles / slots;
  std::int64_t end = slots == 1 ? tiles : (slot + 1) * tiles / slots;
  if (run.is_full && block_rows_ != 0) {
    BUROPT_ASSERT(block_rows_ % rows == 0);
    first = slot * (block_rows_ / rows);
    end = std::min(tiles, first + block_rows_ / rows);
  }
  for (std::int64_t tile = first; tile < end; ++tile) {
    const std::int64_t from = tile * rows;
    const std::int64_t n = std::min(rows, batch.count - from);
    bind_rows(run, batch, from, n, state);
    execute(run.is_full ? full_tile_ : program_.tile, run,
            {state.buffers.data(), n, scratch, tile > first, state.picks.data(),
             state.sparse.data(), run.is_one_tile ? run.step_size() : 0});
    if (program_.has_per_sample_output) copy_rows(batch, from, n, state);
  }
  if (run.is_full) run_block_sums(run, slot, state);
}

std::int64_t Engine::row_bytes(const InputRole& role) const {
  return data_.dense[at(role.number)].row_size * size_of(program_.dtype);
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

/// Rows from..from+n-1 of a batch, of a CSR array.
const std::byte* Engine::csr_rows(const Run& run, const Batch& batch, std::int64_t from,
                                  std::int64_t n, std::size_t input, std::int64_t number,
                                  ThreadState& state) const {
  const CsrData& data = data_.csr[at(number)];
  const auto fill = [&](auto& rows) {
    using T = std::remove_cvref_t<decltype(*rows.values)>;
    rows.values = reinterpret_cast<const T*>(data.values);
    rows.columns = data.columns;
    rows.row_starts = data.row_starts;
    rows.n_entries = data.row_starts[data_.n_samples];
    rows.rows = batch.idx == nullptr ? nullptr : batch.idx + from;
    rows.first = batch.idx == nullptr ? batch.first + from : 0;
    rows.n = n;
    rows.order = nullptr;
    if (batch.fixed >= 0 && irregular_[at(number)]) {
      rows.order = run.workspace.orders[at(batch.fixed)][at(number)].data() + from;
    }
    return reinterpret_cast<const std::byte*>(&rows);
  };
  return program_.dtype == DType::float32 ? fill(state.csr32[input]) : fill(state.csr64[input]);
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
      const std::int64_t*& picks = state.picks[at(program_.input_buffers[k])];
      picks = nullptr;
      if (picked_[k] && idx != nullptr) {
        buffer = const_cast<std::byte*>(data.values);
        picks = idx;
      } else if (idx == nullptr || n == 1) {
        const std::int64_t first = idx == nullptr ? batch.first + from : idx[0];
        buffer = const_cast<std::byte*>(data.values) + first * bytes;
      } else {
        buffer = state.gathered[k].data();
        gather_rows(data.values, idx, n, bytes, buffer);
      }
      if (sparse_[k] >= 0) {
        state.sparse[at(program_.input_buffers[k])] =
            csr_rows(run, batch, from, n, k, sparse_[k], state);
      }
    } else if (role.kind == InputRole::csr_data) {
      // Inputs are only read.
      buffer = const_cast<std::byte*>(csr_rows(run, batch, from, n, k, role.number, state));
    }
  }
  for (std::size_t k = 0; run.is_full && k < full_products_.size(); ++k) {
    state.buffers[at(full_products_[k].rows)] = run.workspace.full_rows[k].data() + from * item;
  }
  for (std::size_t k = 0; program_.has_per_sample_output && k < outputs_.size(); ++k) {
    const OutputPlan& plan = program_.outputs[k];
    if (!plan.per_sample || !direct_[k]) continue;
    state.buffers[at(plan.buffer)] = output(batch, k) + from * plan.bytes;
  }
}

}  // namespace buropt
