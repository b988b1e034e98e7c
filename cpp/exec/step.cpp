// The step of gradient descent at the end of a call. A gradient that one product makes goes to x
// from the registers in which it is summed, and takes no way through memory.
#include "math/step.h"

#include <algorithm>

#include "exec/workspace.h"

namespace buropt {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

bool reads(const Instruction& s, std::int32_t buffer) {
  return std::find(s.in.begin(), s.in.end(), buffer) != s.in.end();
}

}  // namespace

/// A part of the gradient may be subtracted from x where it is made if it is nothing but one
/// output, and nothing that runs later reads that part of x.
void Engine::find_steps() {
  step_rows_.assign(outputs_.size(), 0);
  std::vector<Instruction*> order;
  for (Instruction& s : program_.tile) order.push_back(&s);
  for (Instruction& s : program_.after) order.push_back(&s);
  const auto outputs_in = [&](std::int32_t buffer) {
    std::vector<std::size_t> found;
    for (std::size_t k = 0; k < outputs_.size(); ++k) {
      if (program_.outputs[k].buffer == buffer) found.push_back(k);
    }
    return found;
  };
  for (std::size_t i = 0; i < order.size(); ++i) {
    Instruction& maker = *order[i];
    if (maker.step_rows == 0) continue;
    const auto is_read = [&](std::int32_t buffer) {
      return std::any_of(order.begin() + static_cast<std::ptrdiff_t>(i), order.end(),
                         [&](const Instruction* s) { return reads(*s, buffer); });
    };
    const std::vector<std::size_t> made = outputs_in(maker.out);
    bool is_free = made.size() == 1 && !is_read(maker.out);
    const std::int64_t begin = is_free ? outputs_[made[0]].offset : 0;
    const std::int64_t end = begin + (is_free ? output_size(made[0]) : 0);
    for (std::size_t k = 0; is_free && k < inputs_.size(); ++k) {
      if (inputs_[k].kind != InputRole::vector) continue;
      const std::int64_t first = inputs_[k].offset;
      const Type& type = program_.graph->node(program_.graph->inputs[k].node).type;
      if (first >= end || first + type.size() <= begin) continue;
      const std::int32_t buffer = program_.input_buffers[k];
      is_free = !is_read(buffer) && outputs_in(buffer).empty();
    }
    if (!is_free) {
      maker.step_rows = 0;
      continue;
    }
    step_rows_[made[0]] = i < program_.tile.size() ? maker.step_rows : kAnyRows;
    step_order_.push_back(made[0]);
  }
  std::sort(step_order_.begin(), step_order_.end(),
            [&](std::size_t a, std::size_t b) { return outputs_[a].offset < outputs_[b].offset; });
}

std::int64_t Engine::output_size(std::size_t k) const {
  return program_.outputs[k].bytes / size_of(program_.dtype);
}

/// Subtracts what has not been subtracted where it was made.
void Engine::finish_step(const Run& run) const {
  dispatch(program_.dtype, [&](auto zero) {
    using T = decltype(zero);
    const Step& step = *run.step;
    const T* g = reinterpret_cast<const T*>(run.batches[0].outputs[at(step.gradient)]);
    T* x = reinterpret_cast<T*>(step.x);
    std::int64_t begin = 0;
    const auto subtract_until = [&](std::int64_t end) {
      subtract_scaled(end - begin, static_cast<T>(step.size), g + begin, x + begin, run.threads);
    };
    for (const std::size_t k : step_order_) {
      if (!run.steps_at_once(step_rows_[k])) continue;
      subtract_until(outputs_[k].offset);
      begin = outputs_[k].offset + output_size(k);
    }
    subtract_until(step.dim);
  });
}

}  // namespace buropt
