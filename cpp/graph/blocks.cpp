#include "graph/blocks.h"

#include <algorithm>
#include <unordered_map>

#include "base/buffer.h"

namespace buropt {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
void stop(T* const*, const BlockInstruction<T>*, typename Pack<T>::Vector, typename Pack<T>::Vector,
          typename Pack<T>::Vector, typename Pack<T>::Vector, typename Pack<T>::Vector,
          typename Pack<T>::Vector, typename Pack<T>::Vector, typename Pack<T>::Vector) {}

template <class T, class V = typename Pack<T>::Vector>
void store(T* const* at, const BlockInstruction<T>* s, V v0, V v1, V v2, V v3, V v4, V v5, V v6,
           V v7) {
  T* out = at[s->a];
  const auto put = [&](V v, int k) { Pack<T>::wrap(v).store(out + k * Pack<T>::size); };
  put(v0, 0);
  put(v1, 1);
  put(v2, 2);
  put(v3, 3);
  put(v4, 4);
  put(v5, 5);
  put(v6, 6);
  put(v7, 7);
  return s[1].run(at, s + 1, v0, v1, v2, v3, v4, v5, v6, v7);
}

template <class T>
class TypedBlockProgram final : public BlockProgram {
 public:
  TypedBlockProgram(std::span<const BlockNode> nodes, std::span<const OperandKind> kinds)
      : nodes_(nodes), kinds_(kinds) {
    for (const BlockNode& node : nodes) {
      last_use_[node.out] = 0;
      made_.emplace(node.out, -1);
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const std::int32_t in : nodes[i].in) last_use_[in] = i;
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) add(i);
    code_.push_back({stop<T>, 0, 0, 0});
    nodes_ = {};
    kinds_ = {};
  }

  std::int64_t block() const override { return kBlock<T>; }

  std::int64_t scratch_bytes() const override {
    return table_bytes() + n_private_ * kBlock<T> * static_cast<std::int64_t>(sizeof(T));
  }

  void run(std::byte* const* operands, std::int64_t n, std::byte* scratch) const noexcept override {
    T** table = reinterpret_cast<T**>(scratch);
    T* own = reinterpret_cast<T*>(scratch + table_bytes());
    for (std::size_t e = 0; e < entries_.size(); ++e) {
      const Entry& entry = entries_[e];
      if (entry.place < 0) {
        table[e] = reinterpret_cast<T*>(operands[entry.operand]);
        continue;
      }
      table[e] = own + entry.place * kBlock<T>;
      if (entry.operand >= 0) {
        std::fill_n(table[e], kBlock<T>, *reinterpret_cast<const T*>(operands[entry.operand]));
      }
    }
    const typename Pack<T>::Vector v{};
    for (std::int64_t begin = 0; begin < n; begin += kBlock<T>) {
      const std::int64_t back = std::max<std::int64_t>(0, begin + kBlock<T> - n);
      for (const std::int32_t e : arrays_) table[e] -= back;
      code_[0].run(table, code_.data(), v, v, v, v, v, v, v, v);
      for (const std::int32_t e : arrays_) table[e] += kBlock<T>;
    }
  }

 private:
  /// A row of the table of addresses.
  struct Entry {
    std::int32_t operand;  ///< of the caller; -1: a value that never leaves this program
    std::int64_t place;    ///< a block of its own; -1: in the caller's memory
  };

  std::int64_t table_bytes() const {
    return static_cast<std::int64_t>(round_up(entries_.size() * sizeof(T*)));
  }

  void add(std::size_t i) {
    const BlockNode& node = nodes_[i];
    const auto from = [&](std::size_t k) {
      const bool is_left = k < node.in.size() && node.in[k] == left_;
      return is_left ? Operand::left : Operand::memory;
    };
    const auto place = [&](std::size_t k) {
      return k < node.in.size() && node.in[k] != left_ ? entry(node.in[k]) : 0;
    };
    const BlockHandlers<T>& handlers = [&]() -> const BlockHandlers<T>& {
      if constexpr (std::is_same_v<T, float>)
        return node.op->f32;
      else
        return node.op->f64;
    }();
    code_.push_back({handlers.of(from(0), from(1)), place(0), place(1), node.number});
    release(i);
    left_ = node.out;
    // The next instruction finds the result in registers; whoever reads it later, in memory.
    const bool later = last_use_[node.out] > i + 1;
    if (node.kept || later) {
      made_[node.out] = new_entry(node.out, node.kept ? -1 : take_place(node.out), !node.kept);
      code_.push_back({store<T>, made_[node.out], 0, 0});
    }
  }

  std::int64_t take_place(std::int32_t value) {
    if (free_.empty()) free_.push_back(n_private_++);
    places_[value] = free_.back();
    free_.pop_back();
    return places_[value];
  }

  /// Gives back the places of values that node i was the last to use.
  void release(std::size_t i) {
    std::erase_if(places_, [&](const auto& item) {
      if (last_use_[item.first] != i) return false;
      free_.push_back(item.second);
      return true;
    });
  }

  std::int32_t entry(std::int32_t operand) {
    if (const auto own = made_.find(operand); own != made_.end()) return own->second;
    if (const auto known = read_.find(operand); known != read_.end()) return known->second;
    const bool is_number = kinds_[at(operand)] == OperandKind::number;
    return read_[operand] = new_entry(operand, is_number ? n_private_++ : -1, false);
  }

  std::int32_t new_entry(std::int32_t operand, std::int64_t place, bool is_private) {
    const auto number = static_cast<std::int32_t>(entries_.size());
    entries_.push_back({is_private ? -1 : operand, place});
    if (place < 0) arrays_.push_back(number);
    return number;
  }

  std::span<const BlockNode> nodes_;
  std::span<const OperandKind> kinds_;
  std::unordered_map<std::int32_t, std::size_t> last_use_;
  std::unordered_map<std::int32_t, std::int32_t> made_;  ///< results: their entries, or -1
  std::unordered_map<std::int32_t, std::int32_t> read_;
  std::vector<BlockInstruction<T>> code_;
  std::vector<Entry> entries_;
  std::vector<std::int32_t> arrays_;  ///< the entries that move on from block to block
  std::unordered_map<std::int32_t, std::int64_t> places_;
  std::vector<std::int64_t> free_;
  std::int32_t left_ = -1;
  std::int64_t n_private_ = 0;
};

}  // namespace

std::shared_ptr<const BlockProgram> BlockProgram::compile(DType dtype,
                                                          std::span<const BlockNode> nodes,
                                                          std::span<const OperandKind> kinds) {
  if (dtype == DType::float32) {
    return std::make_shared<const TypedBlockProgram<float>>(nodes, kinds);
  }
  return std::make_shared<const TypedBlockProgram<double>>(nodes, kinds);
}

}  // namespace buropt
