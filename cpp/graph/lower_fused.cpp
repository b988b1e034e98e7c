// From the nodes of a fused step to its instruction: their order, where values are kept, and which
// parts run in blocks.
#include <algorithm>
#include <cstring>
#include <numeric>

#include "base/buffer.h"
#include "graph/chunks.h"
#include "graph/fuse.h"

namespace buropt {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

class FusedLowering {
 public:
  FusedLowering(const Graph& graph, const Step& step, std::span<const std::int32_t> buffer,
                const std::unordered_map<std::int32_t, View>& views,
                const std::vector<bool>& is_local, const std::vector<bool>& is_final)
      : g_(graph),
        step_(step),
        buffer_(buffer),
        views_(views),
        is_local_(is_local),
        is_final_(is_final) {}

  Instruction run() {
    const Type& first = type(step_.nodes[0]);
    f_->size = first.size();
    f_->item = size_of(first.dtype);
    nodes_ = in_block_order(g_, step_.nodes, buffer_);
    find_delayed();
    find_direct();
    find_last_uses();
    for (std::size_t t = 0; t < nodes_.size(); ++t) part(nodes_[t], t);
    if (!f_->delayed.empty()) find_repeated();
    f_->slot_bytes = delayed_bytes_ + n_slots_ * kLongest * f_->item;
    if (f_->size == 1) make_single(first.dtype);
    Instruction s;
    s.run = run_fused;
    s.scratch_bytes =
        static_cast<std::int64_t>(round_up(f_->operands.size() * sizeof(void*)) +
                                  round_up(at(f_->slot_bytes + make_segments(first.dtype))));
    s.out = buffer_[at(step_.nodes.back())];
    s.batched = first.batched;
    s.splits = !first.batched && !f_->has_sums && !adds_to_results_;
    for (const Fused::Operand& operand : f_->operands) {
      if (operand.kind != Fused::Operand::scratch) s.in.push_back(operand.buffer);
    }
    s.fused = f_;
    return s;
  }

 private:
  const Node& node(std::int64_t i) const { return g_.nodes[at(i)]; }
  const Type& type(std::int64_t i) const { return node(i).type; }

  static OpId slices_vjp() {
    static const OpId id = find_op("slices_vjp");
    return id;
  }

  static OpId add() {
    static const OpId id = find_op("add");
    return id;
  }

  /// Joins neighbouring parts that can run in blocks; gives the scratch bytes that they need.
  std::int64_t make_segments(DType dtype) {
    std::vector<OperandKind> kinds;
    for (const Fused::Operand& operand : f_->operands) {
      const bool is_number = operand.kind == Fused::Operand::number;
      kinds.push_back(is_number ? OperandKind::number : OperandKind::array);
    }
    std::int64_t bytes = 0;
    for (std::size_t begin = 0, end = 0; begin < f_->parts.size(); begin = end) {
      while (end < f_->parts.size() && block_ops_[end] != nullptr) ++end;
      if (end - begin < 2) {
        end = std::max(end, begin + 1);
        f_->segments.push_back({nullptr, begin});
        continue;
      }
      std::vector<BlockNode> group;
      for (std::size_t k = begin; k < end; ++k) {
        const Instruction& s = f_->parts[k];
        group.push_back({block_ops_[k], s.in, s.out, numbers_of_[k], how_kept(s.out, begin, end)});
      }
      const auto blocks = BlockProgram::compile(dtype, group, kinds);
      bytes = std::max(bytes, blocks->scratch_bytes());
      f_->block = blocks->block();
      f_->segments.push_back({blocks, begin});
    }
    return bytes;
  }

  /// Numbers, one for each sample, are a single element when there is one sample.
  void make_single(DType dtype) {
    std::vector<SingleNode> nodes;
    for (std::size_t k = 0; k < f_->parts.size(); ++k) {
      const Instruction& s = f_->parts[k];
      nodes.push_back({&op(node(nodes_[k]).op), s.in, s.out, numbers_of_[k]});
    }
    std::vector<SingleValue> values;
    for (std::size_t k = 0; k < f_->operands.size(); ++k) {
      const Fused::Operand& o = f_->operands[k];
      if (o.kind == Fused::Operand::scratch) continue;
      values.push_back({static_cast<std::int32_t>(k), o.buffer, o.offset});
    }
    f_->single = SingleProgram::compile(dtype, nodes, values);
  }

  /// In memory if a part outside of [begin, end) reads it, or it is a result of the step.
  Kept how_kept(std::int32_t operand, std::size_t begin, std::size_t end) {
    const Fused::Operand& o = f_->operands[at(operand)];
    if (o.kind == Fused::Operand::scratch && o.offset >= delayed_bytes_) {
      for (std::size_t k = 0; k < f_->parts.size(); ++k) {
        const auto& in = f_->parts[k].in;
        if (k >= begin && k < end) continue;
        if (std::find(in.begin(), in.end(), operand) != in.end()) return Kept::yes;
      }
      return Kept::no;
    }
    if (!is_streamed(o)) return Kept::yes;
    f_->streamed = operand;
    return Kept::streamed;
  }

  /// Whether it is a large result that nothing reads, and that no other part adds to.
  bool is_streamed(const Fused::Operand& o) const {
    const bool is_large = f_->size * f_->item >= kStreamedBytes;
    if (o.kind != Fused::Operand::stream || !is_large || !is_final_[at(o.buffer)]) return false;
    return std::count_if(f_->operands.begin(), f_->operands.end(), [&](const auto& other) {
             return other.buffer == o.buffer && other.kind != Fused::Operand::scratch;
           }) == 1;
  }

  void add_part(Instruction s, const BlockOp* block_op, std::int64_t number) {
    f_->parts.push_back(std::move(s));
    block_ops_.push_back(block_op);
    numbers_of_.push_back(static_cast<std::int32_t>(number));
  }

  void part(std::int64_t i, std::size_t t) {
    static const OpId sum = find_op("sum");
    const Node& n = node(i);
    if (n.op == slices_vjp()) {
      if (is_delayed(n))
        add_delayed(n, buffer_[at(i)]);
      else
        add_slices(n, buffer_[at(i)]);
      release(t);
      return;
    }
    Instruction s;
    s.batched = true;
    for (const NodeId input : n.inputs) s.in.push_back(operand(input));
    if (n.op == sum) {
      f_->has_sums = true;
      s.run = sum_part(n.type.dtype);
      s.out = add_operand({Fused::Operand::number, buffer_[at(i)], 0});
      f_->zeroed.push_back({buffer_[at(i)], 0, f_->item});
      add_part(std::move(s), nullptr, 0);
      release(t);
    } else {
      // One number a sample: what the kernel needs to know of a chunk.
      std::vector<Type> types;
      for (const NodeId input : n.inputs) types.push_back(as_sample(type(input), is_number(input)));
      const Type out = as_sample(n.type, false);
      op(n.op).lower({types, out, n.attributes, kLongest}, s);
      // A kernel may write over what it reads, a block program not: it computes elements twice.
      const BlockOp* block_op = find_block_op(op(n.op).name);
      if (block_op == nullptr) release(t);
      s.out = result(i);
      const auto& numbers = n.attributes.lists[0];
      add_part(std::move(s), block_op, numbers.empty() ? 0 : numbers[0]);
    }
  }

  /// The slices of a sum of shifted arrays, the one that is furthest ahead first: it comes to each
  /// element before the others, so it need not add to a zero.
  static std::vector<std::size_t> by_offset(const Node& n) {
    std::vector<std::size_t> order(n.inputs.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return n.attributes[0][a] > n.attributes[0][b];
    });
    return order;
  }

  /// How far an operand of such a sum lies ahead of the one that comes last to each element.
  static std::int64_t delay(const Node& n, std::size_t k) {
    const auto& offsets = n.attributes[0];
    return offsets[k] - *std::min_element(offsets.begin(), offsets.end());
  }

  /// Whether each of its elements is summed at once: operands that come to it early wait in scratch
  /// memory, for which they must be made here and lie ahead by a chunk at most.
  bool is_delayed(const Node& n) const {
    if (n.inputs.size() < 2) return false;
    for (std::size_t k = 0; k < n.inputs.size(); ++k) {
      const std::int64_t ahead = delay(n, k);
      if (ahead > kChunk || (ahead > 0 && !is_local_[at(buffer_[at(n.inputs[k])])])) return false;
    }
    return true;
  }

  /// Lays out the scratch memory of values that wait: room for a chunk, before it what has waited.
  void find_delayed() {
    std::unordered_map<std::int32_t, std::int64_t> delays;
    for (const std::int64_t i : nodes_) {
      const Node& n = node(i);
      if (n.op != slices_vjp() || !is_delayed(n)) continue;
      for (std::size_t k = 0; k < n.inputs.size(); ++k) {
        if (delay(n, k) == 0) continue;
        std::int64_t& longest = delays[buffer_[at(n.inputs[k])]];
        longest = std::max(longest, delay(n, k));
      }
    }
    for (const std::int64_t i : nodes_) {
      const auto found = delays.find(buffer_[at(i)]);
      if (found == delays.end()) continue;
      const std::int64_t bytes = found->second * f_->item;
      delayed_bytes_ += static_cast<std::int64_t>(round_up(at(bytes)));
      delayed_.emplace(found->first, delayed_bytes_);
      f_->delayed.push_back({delayed_bytes_, bytes});
      delayed_bytes_ += kLongest * f_->item;
    }
  }

  void find_repeated() {
    for (const Instruction& s : f_->parts) {
      if (f_->operands[at(s.out)].kind == Fused::Operand::stream) {
        f_->repeated.push_back({s.out, slot_offset(n_slots_++)});
      }
    }
  }

  /// The parts of a sum of shifted arrays that sums up each element at once.
  void add_delayed(const Node& n, std::int32_t buffer) {
    const std::vector<std::size_t> order = by_offset(n);
    const std::int64_t behind = n.attributes[0][order.back()];
    const std::int64_t reach = delay(n, order[0]);
    const auto out = add_operand({Fused::Operand::stream, buffer, behind * f_->item});
    Instruction tail;
    tail.run = tail_part(n.type.dtype);
    tail.out = out;
    std::int32_t total = -1;
    for (std::size_t k = 0; k < order.size(); ++k) {
      const NodeId input = n.inputs[order[k]];
      const std::int64_t ahead = delay(n, order[k]);
      std::int32_t term = operand(input);
      if (ahead > 0) {
        term = add_operand({Fused::Operand::scratch, buffer_[at(input)],
                            delayed_.at(buffer_[at(input)]) - ahead * f_->item});
        tail.in.push_back(term);
        tail.numbers.push_back(ahead);
      }
      if (k == 0) {
        total = term;
        continue;
      }
      Instruction s;
      s.batched = true;
      s.in = {total, term};
      const Type sample = as_sample(n.type, false);
      const Type types[] = {sample, as_sample(n.type, ahead == 0 && is_number(input))};
      op(add()).lower({types, sample, Attributes(), kLongest}, s);
      total = out;
      if (k + 1 < order.size()) {
        total = add_operand({Fused::Operand::scratch, buffer, slot_offset(n_slots_++)});
      }
      s.out = total;
      add_part(std::move(s), find_block_op("add"), 0);
    }
    if (reach > 0) f_->tails.push_back(std::move(tail));
    const std::int64_t end = behind + f_->size + reach;
    f_->zeroed.push_back({buffer, 0, behind * f_->item});
    f_->zeroed.push_back({buffer, end * f_->item, n.type.size() * f_->item});
  }

  /// Values that only this step reads are made where such a sum begins with them.
  void find_direct() {
    for (const std::int64_t i : nodes_) {
      const Node& n = node(i);
      if (n.op != slices_vjp() || is_delayed(n)) continue;
      const std::size_t k = by_offset(n)[0];
      const std::int32_t value = buffer_[at(n.inputs[k])];
      const auto uses = std::count_if(n.inputs.begin(), n.inputs.end(),
                                      [&](NodeId input) { return buffer_[at(input)] == value; });
      if (!is_local_[at(value)] || uses > 1 || delayed_.contains(value)) continue;
      direct_.emplace(value, Fused::Operand{Fused::Operand::stream, buffer_[at(i)],
                                            n.attributes[0][k] * f_->item});
    }
  }

  void add_slices(const Node& n, std::int32_t buffer) {
    adds_to_results_ = true;
    const std::vector<std::size_t> order = by_offset(n);
    for (const std::size_t k : order) {
      const auto direct = direct_.find(buffer_[at(n.inputs[k])]);
      const bool first = k == order[0];
      if (first && direct != direct_.end() && direct->second.buffer == buffer) continue;
      Instruction s;
      s.in.push_back(stream(n.inputs[k]));
      s.out = add_operand({Fused::Operand::stream, buffer, n.attributes[0][k] * f_->item});
      s.run = slice_part(n.type.dtype, first);
      add_part(std::move(s), nullptr, 0);
    }
    const std::int64_t ahead = n.attributes[0][order[0]];
    f_->zeroed.push_back({buffer, 0, ahead * f_->item});
    f_->zeroed.push_back({buffer, (ahead + f_->size) * f_->item, n.type.size() * f_->item});
  }

  static Type as_sample(const Type& whole, bool is_number) {
    Type sample = whole;
    sample.batched = !is_number;
    sample.shape = Shape();
    return sample;
  }

  /// One number for all elements: a single one, or a constant with equal elements, of which the
  /// first is read.
  bool is_number(NodeId input) const {
    if (type(step_.nodes[0]).batched) return !type(input).batched;
    return type(input).size() != f_->size || is_uniform(node(input));
  }

  bool is_uniform(const Node& constant) const {
    if (!constant.is_constant) return false;
    const std::byte* first = g_.constants[at(constant.slot)]->data();
    const std::int64_t bytes = constant.type.size() * f_->item;
    return std::memcmp(first, first + f_->item, at(bytes - f_->item)) == 0;
  }

  std::int32_t add_operand(const Fused::Operand& operand) {
    f_->operands.push_back(operand);
    return static_cast<std::int32_t>(f_->operands.size()) - 1;
  }

  std::int32_t operand(NodeId input) {
    const std::int32_t buffer = buffer_[at(input)];
    const auto known = numbers_.find(buffer);
    if (known != numbers_.end()) return known->second;
    Fused::Operand operand{Fused::Operand::stream, buffer, 0};
    if (const auto view = views_.find(buffer); view != views_.end()) {
      operand.buffer = view->second.source;
      operand.offset = view->second.offset * f_->item;
    } else if (is_number(input)) {
      operand.kind = Fused::Operand::number;
    }
    return numbers_[buffer] = add_operand(operand);
  }

  /// The same for a kernel that reads every element, also of a constant.
  std::int32_t stream(NodeId input) {
    if (!is_number(input)) return operand(input);
    return add_operand({Fused::Operand::stream, buffer_[at(input)], 0});
  }

  std::int32_t result(std::int64_t i) {
    const std::int32_t buffer = buffer_[at(i)];
    Fused::Operand operand{Fused::Operand::stream, buffer, 0};
    if (const auto direct = direct_.find(buffer); direct != direct_.end()) {
      operand = direct->second;
    } else if (const auto delayed = delayed_.find(buffer); delayed != delayed_.end()) {
      operand.kind = Fused::Operand::scratch;
      operand.offset = delayed->second;
    } else if (is_local_[at(buffer)]) {
      operand.kind = Fused::Operand::scratch;
      operand.offset = slot_offset(take_slot(buffer));
    }
    return numbers_[buffer] = add_operand(operand);
  }

  void find_last_uses() {
    for (std::size_t t = 0; t < nodes_.size(); ++t) {
      last_use_[buffer_[at(nodes_[t])]] = t;
      for (const NodeId input : node(nodes_[t]).inputs) last_use_[buffer_[at(input)]] = t;
    }
  }

  std::int64_t slot_offset(std::int64_t slot) const {
    return delayed_bytes_ + slot * kLongest * f_->item;
  }

  std::int64_t take_slot(std::int32_t buffer) {
    std::int64_t slot = n_slots_;
    if (free_.empty()) {
      ++n_slots_;
    } else {
      slot = free_.back();
      free_.pop_back();
    }
    slots_[buffer] = slot;
    return slot;
  }

  /// Gives back the slots of values that parts up to t were the last to use.
  void release(std::size_t t) {
    std::erase_if(slots_, [&](const auto& item) {
      if (last_use_[item.first] > t) return false;
      free_.push_back(item.second);
      return true;
    });
  }

  const Graph& g_;
  const Step& step_;
  std::vector<std::int64_t> nodes_;        ///< of the step, in the order in which they run
  std::vector<const BlockOp*> block_ops_;  ///< by part; null for what cannot run in blocks
  std::vector<std::int32_t> numbers_of_;   ///< by part: the constant that its formula has
  std::span<const std::int32_t> buffer_;
  const std::unordered_map<std::int32_t, View>& views_;
  const std::vector<bool>& is_local_;
  const std::vector<bool>& is_final_;
  std::shared_ptr<Fused> f_ = std::make_shared<Fused>();
  std::unordered_map<std::int32_t, std::int32_t> numbers_;   ///< buffer to operand
  std::unordered_map<std::int32_t, Fused::Operand> direct_;  ///< by buffer: made at this place
  std::unordered_map<std::int32_t, std::int64_t> delayed_;   ///< by buffer: its chunk's offset
  std::int64_t delayed_bytes_ = 0;
  bool adds_to_results_ = false;  ///< in two places of an array at once
  std::unordered_map<std::int32_t, std::size_t> last_use_;
  std::unordered_map<std::int32_t, std::int64_t> slots_;
  std::vector<std::int64_t> free_;
  std::int64_t n_slots_ = 0;
};

}  // namespace

Instruction lower_fused(const Graph& graph, const Step& step, std::span<const std::int32_t> buffer,
                        const std::unordered_map<std::int32_t, View>& views,
                        const std::vector<bool>& is_local, const std::vector<bool>& is_final) {
  return FusedLowering(graph, step, buffer, views, is_local, is_final).run();
}

}  // namespace buropt
