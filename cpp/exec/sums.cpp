// What comes out of the tiles: slots added up, outputs copied to where the caller wants them.
#include <algorithm>
#include <cstring>

#include "base/pool.h"
#include "exec/workspace.h"

namespace buropt {
namespace {

/// Elements that are added up at a time: a block of every slot fits into the first-level cache.
constexpr std::int64_t kBlock = 512;
/// Sums longer than this (elements of all slots) are added up by several threads.
constexpr std::int64_t kParallelCombine = 1 << 16;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
void add_into(T* to, const T* from, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) to[i] += from[i];
}

}  // namespace

/// Adds a batch's slots into its first one: pairs at distance 1, 2, 4, ...
void Engine::combine(const Run& run, std::int64_t batch) const {
  Workspace& w = run.workspace;
  const std::int64_t slots = w.first_task[at(batch) + 1] - w.first_task[at(batch)];
  for (const Accumulator& a : accumulators_) {
    w.buffers[at(a.buffer)] = sums(run, batch, 0, a);
    if (slots == 1 || (run.is_full && a.is_full_sum)) continue;
    const auto add_block = [&](std::int64_t block, int) {
      const std::int64_t begin = block * kBlock;
      const std::int64_t n = std::min(kBlock, a.size - begin);
      dispatch(program_.dtype, [&](auto zero) {
        using T = decltype(zero);
        const auto at_slot = [&](std::int64_t slot) {
          return reinterpret_cast<T*>(sums(run, batch, slot, a)) + begin;
        };
        for (std::int64_t distance = 1; distance < slots; distance *= 2) {
          for (std::int64_t slot = 0; slot + distance < slots; slot += 2 * distance) {
            add_into(at_slot(slot), at_slot(slot + distance), n);
          }
        }
      });
    };
    const bool parallel = a.size * slots > kParallelCombine;
    Pool::run((a.size + kBlock - 1) / kBlock, parallel ? run.threads : 1, add_block);
  }
}

void Engine::copy_outputs(std::span<std::byte* const> buffers, const Batch& batch,
                          bool first) const {
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const OutputPlan& plan = program_.outputs[k];
    if (plan.per_sample || direct_[k] || (plan.in_place && (plan.after || first))) continue;
    std::memcpy(output(batch, k), buffers[at(plan.buffer)], at(plan.bytes));
  }
}

/// Copies the values of samples from..from+rows-1 to where the caller wants them.
void Engine::copy_rows(const Batch& batch, std::int64_t from, std::int64_t rows,
                       const ThreadState& state) const {
  for (std::size_t k = 0; k < outputs_.size(); ++k) {
    const OutputPlan& plan = program_.outputs[k];
    if (!plan.per_sample || direct_[k]) continue;
    const std::int64_t stride = outputs_[k].row_stride * size_of(program_.dtype);
    const std::byte* row = state.buffers[at(plan.buffer)];
    std::byte* to = output(batch, k) + from * stride;
    for (std::int64_t i = 0; i < rows; ++i, row += plan.bytes, to += stride) {
      std::memcpy(to, row, at(plan.bytes));
    }
  }
}

}  // namespace buropt
