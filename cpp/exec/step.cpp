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

/// A sum may be subtracted from x where it is made if it is nothing but one output, and nothing
/// that runs later reads that part of x.
void Engine::find_steps() {
  std::vector<Instruction>& tile = program_.tile;
  const auto is_read = [&](std::int32_t buffer, auto from) {
    const auto reader = [&](const Instruction& s) { return reads(s, buffer); };
    return std::any_of(from, tile.end(), reader) ||
           std::any_of(program_.after.begin(), program_.after.end(), reader);
  };
  const auto count_outputs = [&](std::int32_t buffer) {
    return std::count_if(program_.outputs.begin(), program_.outputs.end(),
                         [&](const OutputPlan& output) { return output.buffer == buffer; });
  };
  for (auto maker = tile.begin(); maker != tile.end(); ++maker) {
    if (maker->step_rows == 0) continue;
    const auto a = std::find_if(accumulators_.begin(), accumulators_.end(),
                                [&](const Accumulator& sum) { return sum.buffer == maker->out; });
    bool is_free = a->output >= 0 && count_outputs(a->buffer) == 1 && !is_read(a->buffer, maker);
    const std::int64_t begin = is_free ? outputs_[at(a->output)].offset : 0;
    for (std::size_t k = 0; is_free && k < inputs_.size(); ++k) {
      if (inputs_[k].kind != InputRole::vector) continue;
      const std::int64_t first = inputs_[k].offset;
      const Type& type = program_.graph->node(program_.graph->inputs[k].node).type;
      if (first >= begin + a->size || first + type.size() <= begin) continue;
      const std::int32_t buffer = program_.input_buffers[k];
      is_free = !is_read(buffer, maker) && count_outputs(buffer) == 0;
    }
    if (!is_free) maker->step_rows = 0;
    a->step_rows = maker->step_rows;
    if (is_free) step_order_.push_back(a - accumulators_.begin());
  }
  std::sort(step_order_.begin(), step_order_.end(), [&](std::int64_t a, std::int64_t b) {
    const auto place = [&](std::int64_t i) { return outputs_[at(accumulators_[at(i)].output)]; };
    return place(a).offset < place(b).offset;
  });
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
    for (const std::int64_t i : step_order_) {
      const Accumulator& a = accumulators_[at(i)];
      if (!run.steps_at_once(a)) continue;
      subtract_until(outputs_[at(a.output)].offset);
      begin = outputs_[at(a.output)].offset + a.size;
    }
    subtract_until(step.dim);
  });
}

}  // namespace buropt
