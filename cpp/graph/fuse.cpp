#include "graph/fuse.h"

#include <algorithm>
#include <unordered_set>

namespace buropt {
namespace {

/// Shorter arrays stay in the cache anyway, unless there is one for every sample.
constexpr std::int64_t kMinSize = 64;
/// Of a few instructions over a tile, loops of their own cost no more than what fusing takes.
constexpr std::size_t kMinBatchedParts = 3;
/// More parts than this, and their intermediate values would leave the cache again.
constexpr std::size_t kMaxParts = 64;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

class Fuser {
 public:
  Fuser(const Graph& graph, std::span<const std::uint8_t> part,
        std::span<const std::int32_t> buffer)
      : g_(graph), part_(part), buffer_(buffer) {}

  FusedSteps run(std::span<const std::int64_t> order) {
    for (const std::int64_t node : order) {
      if (!open_.empty() && part_[at(node)] != part_[at(open_.front())]) close();
      visit(node);
    }
    close();
    drop_views();
    return std::move(result_);
  }

 private:
  const Node& node(std::int64_t i) const { return g_.nodes[at(i)]; }
  const Type& type(std::int64_t i) const { return node(i).type; }

  void visit(std::int64_t i) {
    if (const auto view = contiguous_slice(i)) {
      if (touches_open(i)) close();
      candidates_.emplace(buffer_[at(i)], *view);
      result_.steps.push_back({{i}, false});
      return;
    }
    const bool member = is_elementwise(i);
    if (member) {
      const bool is_alike = type(i).size() == size_ && type(i).batched == is_batched_;
      if (open_.empty() || open_.size() >= kMaxParts || !is_alike || needs_finished(i)) {
        close();
        size_ = type(i).size();
        is_batched_ = type(i).batched;
      }
      open_.push_back(i);
      made_.insert(buffer_[at(i)]);
      return;
    }
    if (!open_.empty() && is_end(i) && !needs_finished(i)) {
      open_.push_back(i);
      finished_.insert(buffer_[at(i)]);
      return;
    }
    if (touches_open(i)) close();
    // Independent of the open step, so it may run before it.
    result_.steps.push_back({{i}, false});
  }

  /// One number for each of many elements, made of as many or of a single one.
  bool is_elementwise(std::int64_t i) const {
    const Type& out = type(i);
    if (!op(node(i).op).elementwise || (!out.batched && out.size() < kMinSize)) return false;
    return std::all_of(node(i).inputs.begin(), node(i).inputs.end(), [&](NodeId input) {
      const Type& in = type(input);
      return in.batched == out.batched ? in.size() == out.size() || (!in.batched && in.size() == 1)
                                       : in.size() == 1 && !in.batched;
    });
  }

  /// A sum of all elements, or of shifted arrays, of what the open step makes.
  bool is_end(std::int64_t i) const {
    static const OpId sum = find_op("sum");
    static const OpId slices_vjp = find_op("slices_vjp");
    const Node& n = node(i);
    if (n.type.batched || is_batched_) return false;
    const auto fits = [&](NodeId input) { return type(input).size() == size_; };
    if (!std::all_of(n.inputs.begin(), n.inputs.end(), fits)) return false;
    if (n.op == sum) return n.type.size() == 1 && made_.contains(buffer_[at(n.inputs[0])]);
    return n.op == slices_vjp && n.attributes[1].size() == 1 &&
           std::all_of(n.attributes[2].begin(), n.attributes[2].end(),
                       [](std::int64_t step) { return step == 1; });
  }

  /// A slice that is one run of its operand's elements.
  std::optional<View> contiguous_slice(std::int64_t i) const {
    static const OpId slice = find_op("slice");
    const Node& n = node(i);
    if (n.op != slice || n.type.batched || n.type.size() < kMinSize) return std::nullopt;
    const Shape& whole = type(n.inputs[0]).shape;
    const auto& [starts, sizes, steps] = n.attributes.lists;
    if (steps[0] != 1) return std::nullopt;
    for (std::size_t axis = 1; axis < sizes.size(); ++axis) {
      if (sizes[axis] != whole[static_cast<int>(axis)] || steps[axis] != 1) return std::nullopt;
    }
    return View{buffer_[at(n.inputs[0])], starts[0] * whole.product(1, whole.rank())};
  }

  bool reads(std::int64_t i, const std::unordered_set<std::int32_t>& buffers, bool whole) const {
    return std::any_of(node(i).inputs.begin(), node(i).inputs.end(), [&](NodeId input) {
      const std::int32_t buffer = buffer_[at(input)];
      if (buffers.contains(buffer)) return true;
      const auto view = candidates_.find(buffer);
      return whole && view != candidates_.end() && buffers.contains(view->second.source);
    });
  }

  /// Whether it needs the whole of something that the open step makes.
  bool needs_finished(std::int64_t i) const {
    if (reads(i, finished_, true)) return true;
    return std::any_of(node(i).inputs.begin(), node(i).inputs.end(), [&](NodeId input) {
      const auto view = candidates_.find(buffer_[at(input)]);
      return view != candidates_.end() && made_.contains(view->second.source);
    });
  }

  bool touches_open(std::int64_t i) const {
    return reads(i, made_, true) || reads(i, finished_, true);
  }

  void close() {
    if (open_.size() >= (is_batched_ ? kMinBatchedParts : 2)) {
      result_.steps.push_back({open_, true});
    } else {
      for (const std::int64_t i : open_) result_.steps.push_back({{i}, false});
    }
    open_.clear();
    made_.clear();
    finished_.clear();
  }

  /// Slices that only fused steps read need no instruction.
  void drop_views() {
    std::unordered_set<std::int32_t> needed;
    for (const Step& step : result_.steps) {
      for (const std::int64_t i : step.nodes) {
        for (const NodeId input : node(i).inputs) {
          const std::int32_t buffer = buffer_[at(input)];
          if (!step.fused || type(input).size() == 1) needed.insert(buffer);
        }
      }
    }
    for (const NodeId output : g_.outputs) needed.insert(buffer_[at(output)]);
    // A slice of a slice refers to a buffer that must exist.
    for (const auto& [buffer, view] : candidates_) needed.insert(view.source);
    for (const auto& [buffer, view] : candidates_) {
      if (!needed.contains(buffer)) result_.views.emplace(buffer, view);
    }
    std::erase_if(result_.steps, [&](const Step& step) {
      return !step.fused && result_.views.contains(buffer_[at(step.nodes[0])]);
    });
  }

  const Graph& g_;
  std::span<const std::uint8_t> part_;
  std::span<const std::int32_t> buffer_;
  FusedSteps result_;
  std::vector<std::int64_t> open_;
  std::int64_t size_ = 0;  ///< of what the open step makes
  bool is_batched_ = false;
  std::unordered_set<std::int32_t> made_;      ///< by the open step, element by element
  std::unordered_set<std::int32_t> finished_;  ///< by its end only
  std::unordered_map<std::int32_t, View> candidates_;
};

}  // namespace

FusedSteps fuse(const Graph& graph, std::span<const std::int64_t> order,
                std::span<const std::uint8_t> part, std::span<const std::int32_t> buffer) {
  return Fuser(graph, part, buffer).run(order);
}

}  // namespace buropt
