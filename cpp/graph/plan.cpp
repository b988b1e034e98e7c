#include "graph/plan.h"

#include <algorithm>

#include "graph/arena.h"
#include "graph/epilogue.h"
#include "graph/fuse.h"
#include "graph/remember.h"

namespace buropt {
namespace {

/// A tile's values should stay in the second-level cache beside the data they come from. Those of a
/// program with many accumulators or weights may take as much as they do, up to a limit: all of
/// these pass through the cache once for each tile.
constexpr std::int64_t kTileBytes = 192 * 1024;
constexpr std::int64_t kMaxTileBytes = 1536 * 1024;
/// The rows of dense data that a tile reads should stay in the first-level cache, for the gradient
/// reads them again; unless there are weights to be read for each tile.
constexpr std::int64_t kDataBytes = 32 * 1024;
constexpr std::int64_t kMaxRows = 256;
/// An element of an elementwise instruction weighs as much as this many multiply-adds.
constexpr std::int64_t kElementWork = 4;

enum class Stage : std::uint8_t { none, before, tile, after };

class Planner {
 public:
  Planner(std::shared_ptr<const Graph> graph, std::int64_t max_rows,
          std::span<const std::size_t> sparse)
      : joined_(with_epilogues(with_memories(graph))), g_(*joined_), sparse_(sparse) {
    p_.graph = std::move(graph);
    p_.dtype = g_.nodes.empty() ? DType::float64 : g_.nodes.front().type.dtype;
    p_.max_rows = max_rows;
  }

  Program run() {
    assign_stages();
    assign_buffers();
    fuse_steps();
    find_lifetimes();
    if (p_.max_rows == 0) choose_rows();
    place_buffers();
    p_.shared_elements = shared_elements();
    p_.work_once = work_once();
    lower();
    return std::move(p_);
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  std::int64_t n_nodes() const { return static_cast<std::int64_t>(g_.nodes.size()); }

  void assign_stages() {
    stage_.assign(g_.nodes.size(), Stage::none);
    std::vector<bool> summed(g_.nodes.size(), false);  // depends on an accumulator
    for (std::int64_t i = 0; i < n_nodes(); ++i) {
      const Node& node = g_.nodes[at(i)];
      if (node.op == kNoOp) continue;
      bool after = false;
      for (const NodeId input : node.inputs) after = after || summed[at(input)];
      const bool reduces = op(node.op).batching == Batching::reduces;
      if ((node.type.batched || reduces) && after) {
        raise(
            ErrorKind::value,
            "buropt: a sample's value depends on a sum over the batch; the loss of one sample may "
            "only use that sample");
      }
      stage_[at(i)] = node.type.batched || reduces ? Stage::tile
                      : after                      ? Stage::after
                                                   : Stage::before;
      summed[at(i)] = reduces || after;
    }
  }

  /// One buffer per node; an alias shares its operand's.
  void assign_buffers() {
    buffer_.resize(g_.nodes.size());
    for (std::int64_t i = 0; i < n_nodes(); ++i) {
      const Node& node = g_.nodes[at(i)];
      const bool alias = node.op != kNoOp && op(node.op).alias;
      if (alias) {
        buffer_[at(i)] = buffer_[at(node.inputs[0])];
        continue;
      }
      buffer_[at(i)] = static_cast<std::int32_t>(p_.places.size());
      Place place;
      if (node.is_constant)
        place = {Where::constant, node.slot};
      else if (node.is_input())
        place = {Where::input, node.slot};
      else if (op(node.op).batching == Batching::reduces)
        place.where = Where::accumulator;
      else if (stage_[at(i)] == Stage::tile)
        place.where = Where::tile;
      else
        place.where = Where::shared;
      if (node.type.batched) place.row_bytes = bytes(i, 1);
      p_.places.push_back(place);
      owner_.push_back(static_cast<NodeId>(i));
    }
    for (const Input& input : g_.inputs) p_.input_buffers.push_back(buffer_[at(input.node)]);
    for (std::size_t k = 0; k < g_.outputs.size(); ++k) {
      const NodeId node = g_.outputs[k];
      if (g_.node(node).type.csr) {
        raise(ErrorKind::value,
              "buropt: the output %s is a sparse row, of which only products can be computed",
              g_.output_names[k].c_str());
      }
      const bool per_sample = g_.node(node).type.batched;
      p_.has_per_sample_output = p_.has_per_sample_output || per_sample;
      Place& place = p_.places[at(buffer_[at(node)])];
      const bool in_place = place.where == Where::shared;
      if (in_place) place = {Where::output, static_cast<std::int64_t>(k)};
      p_.outputs.push_back({buffer_[at(node)], bytes(node, 1), per_sample, in_place,
                            stage_[at(node)] == Stage::after});
    }
  }

  bool runs(std::int64_t node) const {
    return g_.nodes[at(node)].op != kNoOp && !op(g_.nodes[at(node)].op).alias;
  }

  /// Nodes in the order in which they run: before, tile, after. Of what runs after the tiles, the
  /// products that are outputs come last, by size: of x a step has the rest read by then.
  std::vector<std::int64_t> order() const {
    std::vector<std::int64_t> result;
    std::vector<std::int64_t> last;
    const std::vector<bool> ends = end_products();
    for (const Stage stage : {Stage::before, Stage::tile, Stage::after}) {
      for (std::int64_t i = 0; i < n_nodes(); ++i) {
        if (stage_[at(i)] != stage || !runs(i)) continue;
        (stage == Stage::after && ends[at(i)] ? last : result).push_back(i);
      }
    }
    std::stable_sort(last.begin(), last.end(), [&](std::int64_t a, std::int64_t b) {
      return g_.nodes[at(a)].type.size() < g_.nodes[at(b)].type.size();
    });
    result.insert(result.end(), last.begin(), last.end());
    return result;
  }

  /// Matrix products that no node reads, reshaped or not.
  std::vector<bool> end_products() const {
    static const OpId matmul = find_op("matmul");
    std::vector<bool> result(g_.nodes.size(), false);
    std::vector<bool> is_read(p_.places.size(), false);
    for (std::int64_t i = 0; i < n_nodes(); ++i) {
      result[at(i)] = g_.nodes[at(i)].op == matmul;
      if (!runs(i)) continue;
      for (const NodeId input : g_.nodes[at(i)].inputs) is_read[at(buffer_[at(input)])] = true;
    }
    for (std::int64_t i = 0; i < n_nodes(); ++i) {
      result[at(i)] = result[at(i)] && !is_read[at(buffer_[at(i)])];
    }
    return result;
  }

  void fuse_steps() {
    std::vector<std::uint8_t> part;
    for (const Stage stage : stage_) part.push_back(static_cast<std::uint8_t>(stage));
    FusedSteps fused = fuse(g_, order(), part, buffer_);
    steps_ = std::move(fused.steps);
    views_ = std::move(fused.views);
    find_local();
  }

  /// The buffer that holds what a node's operand reads.
  std::int32_t source(NodeId input) const {
    const std::int32_t buffer = buffer_[at(input)];
    const auto view = views_.find(buffer);
    return view == views_.end() ? buffer : view->second.source;
  }

  /// Values that only the fused step that makes them reads.
  void find_local() {
    std::vector<std::int64_t> maker(p_.places.size(), -1);
    local_.assign(p_.places.size(), false);
    for (std::size_t t = 0; t < steps_.size(); ++t) {
      for (const std::int64_t i : steps_[t].nodes) {
        maker[at(buffer_[at(i)])] = static_cast<std::int64_t>(t);
        local_[at(buffer_[at(i)])] = steps_[t].fused && op(g_.nodes[at(i)].op).elementwise;
      }
    }
    for (std::size_t t = 0; t < steps_.size(); ++t) {
      for (const std::int64_t i : steps_[t].nodes) {
        for (const NodeId input : g_.nodes[at(i)].inputs) {
          if (maker[at(source(input))] != static_cast<std::int64_t>(t)) {
            local_[at(source(input))] = false;
          }
        }
      }
    }
    for (const OutputPlan& output : p_.outputs) local_[at(output.buffer)] = false;
  }

  /// Results made where the caller wants them that no instruction reads, by buffer.
  std::vector<bool> find_final() const {
    std::vector<bool> is_final(p_.places.size(), false);
    for (const OutputPlan& output : p_.outputs) is_final[at(output.buffer)] = output.in_place;
    for (const Step& step : steps_) {
      for (const std::int64_t i : step.nodes) {
        for (const NodeId input : g_.nodes[at(i)].inputs) is_final[at(source(input))] = false;
      }
    }
    return is_final;
  }

  /// The place in the order of each buffer's last reader. Tiles repeat, and `after` repeats for
  /// every batch of a call, so what comes to them from an earlier stage lives until the last
  /// instruction.
  void find_lifetimes() {
    last_use_.assign(p_.places.size(), -1);
    std::array<std::int64_t, 4> end_of_stage{};
    std::vector<Stage> producer(p_.places.size(), Stage::none);
    for (std::size_t t = 0; t < steps_.size(); ++t) {
      const Stage stage = stage_of(steps_[t]);
      end_of_stage[static_cast<std::size_t>(stage)] = static_cast<std::int64_t>(t);
      for (const std::int64_t i : steps_[t].nodes) producer[at(buffer_[at(i)])] = stage;
    }
    for (std::size_t t = 0; t < steps_.size(); ++t) {
      const Stage stage = stage_of(steps_[t]);
      for (const std::int64_t i : steps_[t].nodes) {
        last_use_[at(buffer_[at(i)])] = static_cast<std::int64_t>(t);
        for (const NodeId input : g_.nodes[at(i)].inputs) {
          const std::int32_t buffer = source(input);
          last_use_[at(buffer)] = producer[at(buffer)] == stage
                                      ? static_cast<std::int64_t>(t)
                                      : end_of_stage[static_cast<std::size_t>(stage)];
        }
      }
    }
    // Read after the last instruction of a tile, which must not write over them either.
    for (const OutputPlan& output : p_.outputs) {
      if (output.per_sample) last_use_[at(output.buffer)] = -1;
    }
  }

  Stage stage_of(const Step& step) const { return stage_[at(step.nodes[0])]; }

  std::int64_t bytes(std::int64_t node, std::int64_t rows) const {
    const Type& type = g_.nodes[at(node)].type;
    return type.size() * size_of(type.dtype) * (type.batched ? rows : 1);
  }

  void choose_rows() {
    p_.max_rows = 1;
    place_buffers();
    std::int64_t data = 1;
    for (std::size_t k = 0; k < g_.inputs.size(); ++k) {
      const Type& type = g_.node(g_.inputs[k].node).type;
      const bool is_sparse =
          type.csr || std::find(sparse_.begin(), sparse_.end(), k) != sparse_.end();
      if (type.batched && !is_sparse) data += type.size() * size_of(type.dtype);
    }
    // A single scalar takes a whole cache line in the count above; that only makes tiles smaller.
    const std::int64_t shared = shared_elements() * size_of(p_.dtype);
    const std::int64_t passing = std::max(4 * p_.accumulator_bytes, 2 * shared);
    const std::int64_t rows =
        std::min(std::clamp(passing, kTileBytes, kMaxTileBytes) / (p_.tile_bytes + data),
                 std::clamp(passing, kDataBytes, kMaxTileBytes) / data);
    p_.max_rows = 8;
    while (p_.max_rows * 2 <= std::min(rows, kMaxRows)) p_.max_rows *= 2;
  }

  /// Elements that the tile's instructions read of what all samples share.
  std::int64_t shared_elements() const {
    std::int64_t total = 0;
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      if (stage_[i] != Stage::tile || !runs(static_cast<std::int64_t>(i))) continue;
      const Node& node = g_.nodes[i];
      for (const NodeId input : node.inputs) {
        const bool is_read = !op(node.op).picks || input != node.inputs[0];
        if (is_read && !g_.node(input).type.batched) total += g_.node(input).type.size();
      }
    }
    return total;
  }

  void place_buffers() {
    Arena shared;
    Arena tile;
    std::int64_t accumulators = 0;
    p_.accumulators.clear();
    std::vector<std::vector<std::int32_t>> dying(steps_.size());
    for (std::size_t b = 0; b < last_use_.size(); ++b) {
      if (last_use_[b] >= 0) dying[at(last_use_[b])].push_back(static_cast<std::int32_t>(b));
    }
    for (std::size_t t = 0; t < steps_.size(); ++t) {
      std::vector<std::int32_t>& dead = dying[t];
      for (const std::int64_t node : steps_[t].nodes) {
        const std::int32_t buffer = buffer_[at(node)];
        Place& place = p_.places[at(buffer)];
        const bool in_arena = place.where == Where::shared || place.where == Where::tile;
        if (place.where == Where::accumulator) {
          place.offset = accumulators;
          p_.accumulators.push_back({buffer, accumulators, g_.nodes[at(node)].type.size()});
          accumulators += static_cast<std::int64_t>(round_up(at(bytes(node, 1))));
        } else if (in_arena && !local_[at(buffer)]) {
          const auto taken = steps_[t].fused ? dead.end() : overwritten(node, dead);
          if (taken != dead.end()) {
            place.offset = p_.places[at(*taken)].offset;
            dead.erase(taken);
          } else {
            place.offset =
                (place.where == Where::tile ? tile : shared).take(bytes(node, p_.max_rows));
          }
        }
      }
      for (const std::int32_t b : dead) {
        const Place& gone = p_.places[at(b)];
        if ((gone.where != Where::shared && gone.where != Where::tile) || local_[at(b)]) continue;
        (gone.where == Where::tile ? tile : shared)
            .give_back(gone.offset, bytes(owner_[at(b)], p_.max_rows));
      }
    }
    p_.shared_bytes = shared.size();
    p_.tile_bytes = tile.size();
    p_.accumulator_bytes = accumulators;
  }

  /// A dying operand of the same type in the same arena that the node may write over.
  std::vector<std::int32_t>::iterator overwritten(std::int64_t node,
                                                  std::vector<std::int32_t>& dead) {
    const Node& n = g_.nodes[at(node)];
    if (!op(n.op).in_place) return dead.end();
    for (const NodeId input : n.inputs) {
      const std::int32_t buffer = buffer_[at(input)];
      if (p_.places[at(buffer)].where != p_.places[at(buffer_[at(node)])].where) continue;
      if (!(g_.node(input).type == n.type)) continue;
      const auto found = std::find(dead.begin(), dead.end(), buffer);
      if (found != dead.end()) return found;
    }
    return dead.end();
  }

  void lower() {
    const std::vector<bool> is_final = find_final();
    for (const Step& step : steps_) {
      const std::int64_t i = step.nodes[0];
      if (step.fused) {
        Instruction instruction = lower_fused(g_, step, buffer_, views_, local_, is_final);
        for (const std::int64_t part : step.nodes) {
          const Node& node = g_.nodes[at(part)];
          // In blocks, an element of an unbatched one takes little more than a multiply-add.
          instruction.work += node.type.batched ? work(node) : node.type.size();
        }
        if (stage_[at(i)] == Stage::tile) p_.work_per_sample += instruction.work;
        append(i, std::move(instruction));
        continue;
      }
      const Node& node = g_.nodes[at(i)];
      Instruction instruction;
      instruction.out = buffer_[at(i)];
      std::vector<Type> types;
      for (const NodeId input : node.inputs) {
        instruction.in.push_back(buffer_[at(input)]);
        types.push_back(g_.node(input).type);
      }
      const bool in_tile = stage_[at(i)] == Stage::tile;
      instruction.batched = node.type.batched;
      instruction.splits_rows = in_tile && node.type.batched && op(node.op).elementwise;
      instruction.work = work(node);
      op(node.op).lower({types, node.type, node.attributes, in_tile ? p_.max_rows : 1},
                        instruction);
      if (in_tile) p_.work_per_sample += instruction.work;
      append(i, std::move(instruction));
    }
  }

  void append(std::int64_t node, Instruction instruction) {
    BUROPT_ASSERT(instruction.run != nullptr);
    p_.scratch_bytes = std::max(p_.scratch_bytes, instruction.scratch_bytes);
    const Stage stage = stage_[at(node)];
    (stage == Stage::tile    ? p_.tile
     : stage == Stage::after ? p_.after
                             : p_.before)
        .push_back(std::move(instruction));
  }

  /// Of one sample, or of the batch. What all samples share is not walked through for each: not a
  /// table of which a sample takes a few rows, nor the accumulator that gets them back.
  std::int64_t work(const Node& node) const {
    std::int64_t size = node.type.batched ? node.type.size() : 0;
    for (const NodeId input : node.inputs) {
      if (g_.node(input).type.csr) return 0;  // depends on the data: the engine adds it
      const bool is_read = !op(node.op).picks || input != node.inputs[0];
      if (is_read && g_.node(input).type.batched) {
        size = std::max(size, g_.node(input).type.size());
      }
    }
    if (op(node.op).work == nullptr) return kElementWork * size;
    std::vector<Type> types;
    for (const NodeId input : node.inputs) types.push_back(g_.node(input).type);
    return std::max(size, op(node.op).work(types, node.type, node.attributes));
  }

  /// Of what does not repeat for every sample.
  std::int64_t work_once() const {
    std::int64_t total = 0;
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      if (stage_[i] == Stage::tile || !runs(static_cast<std::int64_t>(i))) continue;
      total += std::max(kElementWork * g_.nodes[i].type.size(), work(g_.nodes[i]));
    }
    return total;
  }

  std::shared_ptr<const Graph> joined_;
  const Graph& g_;
  std::span<const std::size_t> sparse_;  ///< inputs
  Program p_;
  std::vector<Stage> stage_;
  std::vector<std::int32_t> buffer_;  ///< by node
  std::vector<NodeId> owner_;         ///< by buffer
  std::vector<Step> steps_;           ///< what runs, in order
  std::unordered_map<std::int32_t, View> views_;
  std::vector<bool> local_;             ///< by buffer: only inside of a fused step
  std::vector<std::int64_t> last_use_;  ///< by buffer
};

}  // namespace

Program plan(std::shared_ptr<const Graph> graph, std::int64_t max_rows,
             std::span<const std::size_t> sparse) {
  return Planner(std::move(graph), max_rows, sparse).run();
}

}  // namespace buropt
