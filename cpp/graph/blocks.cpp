#include "graph/blocks.h"

#include <algorithm>
#include <unordered_map>

#include "base/buffer.h"
#include "base/stream.h"

namespace buropt {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T, class V = typename Pack<T>::Vector>
void stop(const BlockInstruction<T>*, std::int64_t, V, V, V, V, V, V, V, V) {}

/// Where a result goes.
enum class Place { array, streamed, own };

template <class T, Place place, class V = typename Pack<T>::Vector>
void store(const BlockInstruction<T>* s, std::int64_t i, V v0, V v1, V v2, V v3, V v4, V v5, V v6,
           V v7) {
  T* out = place == Place::own ? s->a : s->a + i;
  const auto all = [&](auto&& put) __attribute__((always_inline)) {
    put(v0, 0);
    put(v1, 1);
    put(v2, 2);
    put(v3, 3);
    put(v4, 4);
    put(v5, 5);
    put(v6, 6);
    put(v7, 7);
  };
  const bool is_aligned = reinterpret_cast<std::uintptr_t>(out) % BUROPT_VECTOR_BYTES == 0;
  if (place == Place::streamed && is_aligned) {
    all([&](V v, int k) { stream(Pack<T>::wrap(v), out + k * Pack<T>::size); });
  } else {
    all([&](V v, int k) { Pack<T>::wrap(v).store(out + k * Pack<T>::size); });
  }
  return s[1].run(s + 1, i, v0, v1, v2, v3, v4, v5, v6, v7);
}

template <class T>
class TypedBlockProgram final : public BlockProgram {
 public:
  TypedBlockProgram(std::span<const BlockNode> nodes, std::span<const OperandKind> kinds)
      : nodes_(nodes), kinds_(kinds) {
    for (const BlockNode& node : nodes) made_.emplace(node.out, From{});
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (const std::int32_t in : nodes[i].in) last_use_[in] = i;
    }
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!is_twice(nodes[i])) add(i);
    }
    code_.push_back({stop<T>, 0, 0, 0});
    nodes_ = {};
    kinds_ = {};
  }

  std::int64_t block() const override { return kBlock<T>; }

  std::int64_t scratch_bytes() const override {
    return own_bytes() + static_cast<std::int64_t>(code_.size() * sizeof(BlockInstruction<T>));
  }

  void run(std::byte* const* operands, std::int64_t n, std::byte* scratch) const noexcept override {
    T* own = reinterpret_cast<T*>(scratch);
    const auto address = [&](std::int32_t place) {
      return place < 0 ? own + ~place * kBlock<T> : reinterpret_cast<T*>(operands[place]);
    };
    auto* code = reinterpret_cast<BlockInstruction<T>*>(scratch + own_bytes());
    for (std::size_t k = 0; k < code_.size(); ++k) {
      const Code& c = code_[k];
      code[k] = {c.run, address(c.a), address(c.b), c.number};
    }
    const typename Pack<T>::Vector v{};
    for (std::int64_t begin = 0; begin < n; begin += kBlock<T>) {
      code->run(code, std::min(begin, n - kBlock<T>), v, v, v, v, v, v, v, v);
    }
  }

 private:
  /// An instruction, its operands not yet by address: the caller's number of one, or ~k for block k
  /// of this program's own.
  struct Code {
    typename BlockInstruction<T>::Handler run;
    std::int32_t a;
    std::int32_t b;
    std::int32_t number;
  };
  struct From {
    Operand kind = Operand::array;
    std::int32_t place = 0;
  };

  std::int64_t own_bytes() const {
    return n_own_ * kBlock<T> * static_cast<std::int64_t>(sizeof(T));
  }

  /// Whoever reads x + x adds it up himself, if x is in memory anyway.
  bool is_twice(const BlockNode& node) {
    if (node.op->name != "add" || node.in[0] != node.in[1] || node.kept != Kept::no) return false;
    const std::int32_t x = node.in[0];
    if (made_.contains(x) || kinds_[at(x)] == OperandKind::number) return false;
    made_[node.out] = {Operand::twice, x};
    return true;
  }

  From from(std::int32_t value) const {
    if (value == left_) return {Operand::left, 0};
    if (const auto own = made_.find(value); own != made_.end()) return own->second;
    const bool is_number = kinds_[at(value)] == OperandKind::number;
    return {is_number ? Operand::number : Operand::array, value};
  }

  void add(std::size_t i) {
    const BlockNode& node = nodes_[i];
    const From a = from(node.in[0]);
    From b = node.in.size() > 1 ? from(node.in[1]) : From{Operand::left, 0};
    if (node.in.size() > 1 && node.in[0] == node.in[1] && a.kind == Operand::array) {
      b.kind = Operand::same;
    }
    const BlockHandlers<T>& handlers = [&]() -> const BlockHandlers<T>& {
      if constexpr (std::is_same_v<T, float>)
        return node.op->f32;
      else
        return node.op->f64;
    }();
    code_.push_back({handlers.of(a.kind, b.kind), a.place, b.place, node.number});
    release(i);
    left_ = node.out;
    if (node.kept == Kept::yes) {
      made_[node.out] = {Operand::array, node.out};
      code_.push_back({store<T, Place::array>, node.out, 0, 0});
    } else if (node.kept == Kept::streamed) {
      code_.push_back({store<T, Place::streamed>, node.out, 0, 0});
    } else if (last_use_[node.out] > i + 1) {
      // The next instruction finds the result in registers; whoever reads it later, in memory.
      made_[node.out] = {Operand::own, ~take_place(node.out)};
      code_.push_back({store<T, Place::own>, made_[node.out].place, 0, 0});
    }
  }

  std::int32_t take_place(std::int32_t value) {
    if (free_.empty()) free_.push_back(n_own_++);
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

  std::span<const BlockNode> nodes_;
  std::span<const OperandKind> kinds_;
  std::unordered_map<std::int32_t, std::size_t> last_use_;
  std::unordered_map<std::int32_t, From> made_;  ///< where a result stands, once it is stored
  std::vector<Code> code_;
  std::unordered_map<std::int32_t, std::int32_t> places_;  ///< blocks of this program's own
  std::vector<std::int32_t> free_;
  std::int32_t left_ = -1;
  std::int32_t n_own_ = 0;
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
