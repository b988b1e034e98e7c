// Values at some places only, as a graph transform: flat(node)[places], where the places are a
// value of the graph themselves.
//
// The choice is pushed from a node to its operands as far as primitives allow: an element of a sum
// needs its terms, an element of a matrix product a line of each factor. Nodes are visited from the
// back, so that when one is reached it is known whether somebody needs all of it; then, and where a
// primitive has no rule, the places are taken from the whole value.
#include <algorithm>
#include <functional>
#include <map>

#include "graph/places.h"
#include "graph/transform.h"

namespace buropt {
namespace {

class Restrict : private PlaceArithmetic {
 public:
  explicit Restrict(Builder& builder) : PlaceArithmetic(builder) {}

  std::vector<NodeId> run(std::span<const NodeId> nodes, std::span<const NodeId> places) {
    for (std::size_t k = 0; k < nodes.size(); ++k) ask(nodes[k], places[k]);
    while (!pending_.empty()) {
      const auto [node, asked] = *pending_.begin();
      pending_.erase(pending_.begin());
      visit(node, asked);
    }
    for (auto answer = answers_.rbegin(); answer != answers_.rend(); ++answer) {
      results_[{answer->node, answer->places}] = answer->make();
    }
    std::vector<NodeId> result;
    for (std::size_t k = 0; k < nodes.size(); ++k) result.push_back(at(nodes[k], places[k]));
    return result;
  }

 private:
  /// Emits the value at the places, once those of the operands are there.
  using Make = std::function<NodeId()>;
  struct Asked {
    bool whole = false;
    std::vector<NodeId> places;
  };
  struct Answer {
    NodeId node, places;
    Make make;
  };

  // ---- what is asked for

  void ask(NodeId node, NodeId places) {
    auto& asked = pending_[node].places;
    if (std::find(asked.begin(), asked.end(), places) == asked.end()) asked.push_back(places);
  }
  void ask_whole(NodeId node) { pending_[node].whole = true; }
  NodeId at(NodeId node, NodeId places) const { return results_.at({node, places}); }

  void visit(NodeId node, Asked asked) {
    const Node view = b_.at(node);  // a copy: emitting moves the nodes
    for (const NodeId places : asked.places) {
      asked.whole = asked.whole || view.type.size() <= count(places);
    }
    for (const NodeId places : asked.places) {
      Make make = asked.whole || view.op == kNoOp ? nullptr : rule(view, places);
      if (make == nullptr) {
        asked.whole = true;
        make = [this, node, places] { return taken(node, places); };
      }
      answers_.push_back({node, places, std::move(make)});
    }
    if (!asked.whole) return;
    for (const NodeId input : view.inputs) ask_whole(input);
  }

  NodeId taken(NodeId node, NodeId places) {
    if (const auto value = b_.uniform_value(node)) {
      return broadcast(b_.constant(*value, b_.dtype()), {count(places)});
    }
    if (b_.type(node).size() == 1) return broadcast(reshape(node, {}), {count(places)});
    return b_.emit("take", {reshape(node, {b_.type(node).size()}), places}, Attributes({0}));
  }

  Make rule(const Node& node, NodeId places) {
    const Op& record = op(node.op);
    const std::string_view name = record.name;
    if (record.elementwise) return elementwise(node, places);
    const bool sums_axes =
        name == "batch_sum" && !(b_.type(node.inputs[0]).shape == node.type.shape);
    if (sums_axes) return batch_sum(node, places);
    if (name == "reshape" || name == "to_batched" || name == "batch_sum") {
      return same_places(node, places);
    }
    if (name == "transpose" || name == "broadcast_to" || name == "slice") {
      return moved(node, places);
    }
    if (name == "slice_vjp" || name == "slices_vjp" || name == "concatenate") {
      return pieces(node, places);
    }
    if (name == "sum") return sum(node, places);
    if (name == "matmul" || name == "matmul_batch_sum") return matmul(node, places);
    if (name == "sparse_dot_sum") return sparse_dot_sum(node, places);
    if (name == "take_vjp" || name == "take_vjp_batch_sum") return take_vjp(node, places);
    return nullptr;
  }

  // ---- rules

  Make elementwise(const Node& node, NodeId places) {
    std::vector<NodeId> chosen;  // the operands' places, kNone for a single number
    for (const NodeId input : node.inputs) {
      const Shape shape = b_.type(input).shape;
      if (shape.size() == 1) {
        ask_whole(input);
        chosen.push_back(kNone);
        continue;
      }
      chosen.push_back(map(places, node.type.shape, broadcast_strides(shape, node.type.shape)));
      ask(input, chosen.back());
    }
    return [this, node, chosen] {
      std::vector<NodeId> operands;
      for (std::size_t k = 0; k < chosen.size(); ++k) {
        const NodeId input = node.inputs[k];
        operands.push_back(chosen[k] == kNone ? reshape(input, {}) : at(input, chosen[k]));
      }
      return b_.emit(node.op, operands, node.attributes);
    };
  }

  Make same_places(const Node& node, NodeId places) {
    const NodeId input = node.inputs[0];
    ask(input, places);
    return [this, node, input, places] {
      const NodeId value = at(input, places);
      if (op(node.op).name == "reshape") return value;
      const NodeId batched = b_.emit("to_batched", {value});
      return op(node.op).name == "to_batched" ? batched : b_.emit("batch_sum", {batched});
    };
  }

  /// A sum over the samples and over leading axes of each.
  Make batch_sum(const Node& node, NodeId places) {
    const NodeId input = node.inputs[0];
    const std::int64_t size = node.type.size();
    const std::int64_t terms = b_.type(input).size() / std::max<std::int64_t>(1, size);
    const NodeId chosen = spread(places, spread({0}, terms, size));
    ask(input, chosen);
    return [this, input, chosen, places, terms] {
      const NodeId sums = sum_rows(reshape(at(input, chosen), {count(places), terms}));
      return b_.emit("batch_sum", {b_.emit("to_batched", {sums})});
    };
  }

  /// Primitives whose result has elements of the operand at other places.
  Make moved(const Node& node, NodeId places) {
    const NodeId input = node.inputs[0];
    const Shape shape = b_.type(input).shape;
    const auto own = shape.strides();
    Extents strides;
    std::int64_t offset = 0;
    if (op(node.op).name == "broadcast_to") {
      strides = broadcast_strides(shape, node.type.shape);
    } else {
      const bool is_slice = op(node.op).name == "slice";
      for (std::size_t axis = 0; axis < static_cast<std::size_t>(shape.rank()); ++axis) {
        if (is_slice) {
          strides.push_back(own[axis] * node.attributes[2][axis]);
          offset += own[axis] * node.attributes[0][axis];
        } else {
          strides.push_back(own[static_cast<std::size_t>(node.attributes[0][axis])]);
        }
      }
    }
    const NodeId chosen = map(places, node.type.shape, strides, offset);
    ask(input, chosen);
    return [this, input, chosen] { return at(input, chosen); };
  }

  /// Primitives that put operands into slices of the result.
  Make pieces(const Node& node, NodeId places) {
    const bool joins = op(node.op).name == "concatenate";
    const auto rank = static_cast<std::size_t>(node.type.shape.rank());
    std::int64_t start = 0;
    std::vector<std::array<NodeId, 3>> parts;  // operand, place in its slice or -1, the same or 0
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Shape shape = b_.type(node.inputs[k]).shape;
      Extents starts(rank, 0);
      Extents sizes_and_steps = extents_of(shape);
      if (joins) {
        const auto axis = static_cast<std::size_t>(node.attributes[0][0]);
        starts[axis] = start;
        start += shape[static_cast<int>(axis)];
        sizes_and_steps.resize(2 * rank, 1);
      } else {
        const auto own = [&](int list) {
          return node.attributes[list].begin() + static_cast<std::ptrdiff_t>(k * rank);
        };
        std::copy_n(own(0), rank, starts.begin());
        sizes_and_steps.insert(sizes_and_steps.end(), own(2),
                               own(2) + static_cast<std::ptrdiff_t>(rank));
      }
      if (shape.size() == 0) continue;
      const NodeId place =
          b_.emit("index_in_slice", {places},
                  Attributes(extents_of(node.type.shape), starts, sizes_and_steps));
      const NodeId valid = b_.emit("maximum", {place, zero()});
      ask(node.inputs[k], valid);
      parts.push_back({node.inputs[k], place, valid});
    }
    return [this, parts, places] {
      NodeId total = kNone;
      for (const auto& [input, place, valid] : parts) {
        const NodeId inside = b_.emit("greater_equal", {place, zero()});
        const NodeId term = b_.emit("where", {inside, at(input, valid), zero()});
        total = total == kNone ? term : b_.emit("add", {total, term});
      }
      return total == kNone ? broadcast(zero(), {count(places)}) : total;
    };
  }

  Make sum(const Node& node, NodeId places) {
    const NodeId input = node.inputs[0];
    const Shape shape = b_.type(input).shape;
    const auto own = shape.strides();
    const bool keeps = !node.attributes[1].empty() && node.attributes[1][0] != 0;
    Extents strides;  // of the result's axes in the operand
    Extents offsets{0};
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto& axes = node.attributes[0];
      const std::int64_t stride = own[static_cast<std::size_t>(axis)];
      if (std::find(axes.begin(), axes.end(), axis) == axes.end()) {
        strides.push_back(stride);
        continue;
      }
      if (keeps) strides.push_back(0);
      offsets = spread(offsets, shape[axis], stride);
    }
    const auto terms = static_cast<std::int64_t>(offsets.size());
    const NodeId chosen = spread(map(places, node.type.shape, strides), offsets);
    ask(input, chosen);
    return [this, input, chosen, places, terms] {
      return sum_rows(reshape(at(input, chosen), {count(places), terms}));
    };
  }

  /// Rows, or the only one, of a matrix whose products with others are asked for.
  struct Lines {
    NodeId matrix, places;
    std::int64_t length;
  };

  Lines lines(NodeId matrix, bool along_rows, const Shape& result, int axis, NodeId places) {
    const Shape shape = b_.type(matrix).shape;
    const std::int64_t n = shape[along_rows ? 0 : 1];
    const std::int64_t length = shape[along_rows ? 1 : 0];
    if (n == 1) {
      ask_whole(matrix);
      return {matrix, kNone, length};
    }
    Extents strides(2, 0);
    strides[static_cast<std::size_t>(axis)] = along_rows ? length : 1;
    const Extents offsets = spread({0}, length, along_rows ? 1 : n);
    const NodeId chosen = spread(map(places, result, strides), offsets);
    ask(matrix, chosen);
    return {matrix, chosen, length};
  }

  Make matmul(const Node& node, NodeId places) {
    const Shape& result = node.type.shape;
    if (b_.type(node.inputs[0]).shape.rank() != 2 || b_.type(node.inputs[1]).shape.rank() != 2) {
      return nullptr;
    }
    const auto flag = [&](int list) {
      return !node.attributes[list].empty() && node.attributes[list][0] != 0;
    };
    const Lines a = lines(node.inputs[0], !flag(0), result, 0, places);
    const Lines b = lines(node.inputs[1], flag(1), result, 1, places);
    const bool sums = op(node.op).batching == Batching::reduces;
    return [this, a, b, places, sums] {
      const auto rows = [&](const Lines& l) {
        return l.places == kNone ? reshape(l.matrix, {1, l.length})
                                 : reshape(at(l.matrix, l.places), {count(places), l.length});
      };
      const bool one = a.places == kNone || b.places == kNone;
      NodeId value = one ? b_.emit("matmul", {rows(a), rows(b)}, Attributes({0}, {1}))
                         : sum_rows(b_.emit("multiply", {rows(a), rows(b)}));
      value = reshape(value, {count(places)});
      return sums ? b_.emit("batch_sum", {b_.emit("to_batched", {value})}) : value;
    };
  }

  Make sparse_dot_sum(const Node& node, NodeId places) {
    const NodeId factor = node.inputs[1];
    const bool is_vector = node.type.shape.rank() == 1;
    const NodeId column = is_vector ? places : map(places, node.type.shape, {1, 0});
    const NodeId chosen = is_vector ? kNone : map(places, node.type.shape, {0, 1});
    is_vector ? ask_whole(factor) : ask(factor, chosen);
    return [this, node, factor, column, chosen] {
      const NodeId entries = b_.emit("sparse_take", {node.inputs[0], column});
      const NodeId factors = chosen == kNone ? factor : at(factor, chosen);
      return b_.emit("batch_sum", {b_.emit("multiply", {entries, factors})});
    };
  }

  /// The sum of what was picked from each place: of all picks, those that are the place's.
  Make take_vjp(const Node& node, NodeId places) {
    const auto axis = static_cast<int>(node.attributes[0][0]);
    const Shape& whole = node.type.shape;
    const std::int64_t inner = whole.product(axis + 1, whole.rank());
    const Shape around{whole.product(0, axis), whole[axis], inner};
    const std::int64_t picks = b_.type(node.inputs[1]).size();
    if (picks * count(places) >= whole.size() + b_.type(node.inputs[0]).size()) return nullptr;
    const NodeId row = map(places, around, {0, 1, 0});
    const NodeId chosen =
        spread(map(places, around, {picks * inner, 0, 1}), spread({0}, picks, inner));
    ask(node.inputs[0], chosen);
    ask_whole(node.inputs[1]);
    const bool sums = op(node.op).batching == Batching::reduces;
    return [this, node, places, picks, row, chosen, sums, extent = around[1]] {
      const NodeId index = reshape(node.inputs[1], {1, picks});
      const NodeId size = b_.constant(static_cast<double>(extent), b_.dtype());
      const NodeId behind = b_.emit("less", {index, zero()});
      const NodeId wrapped = b_.emit("add", {index, b_.emit("multiply", {behind, size})});
      const NodeId mask = b_.emit("equal", {wrapped, reshape(row, {count(places), 1})});
      const NodeId picked = reshape(at(node.inputs[0], chosen), {count(places), picks});
      const NodeId value = sum_rows(b_.emit("where", {mask, picked, zero()}));
      return sums ? b_.emit("batch_sum", {b_.emit("to_batched", {value})}) : value;
    };
  }

  std::map<NodeId, Asked, std::greater<>> pending_;
  std::vector<Answer> answers_;
  std::map<std::pair<NodeId, NodeId>, NodeId> results_;
};

}  // namespace

std::vector<NodeId> restrict_to(Builder& builder, std::span<const NodeId> nodes,
                                std::span<const NodeId> places) {
  BUROPT_ASSERT(nodes.size() == places.size());
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    if (builder.type(places[k]).shape.rank() == 1) continue;
    raise(ErrorKind::value, "buropt.restrict: places must have one axis, got shape %s",
          builder.type(places[k]).shape.str().c_str());
  }
  return Restrict(builder).run(nodes, places);
}

}  // namespace buropt
