// argsort {"axis"}: the places of the elements in ascending order, a constant of differentiation.
// The values in order are take_along_axis of the array at these places.
//
// NaN comes last, as in NumPy, and equal elements stay in their order.
#include <algorithm>
#include <cmath>

#include "ops/axes.h"
#include "ops/families.h"

namespace buropt {
namespace {

constexpr std::string_view kName = "argsort";

template <class T>
struct Item {
  T value;
  std::int32_t place;

  friend bool operator<(const Item& a, const Item& b) noexcept {
    if (a.value < b.value) return true;
    if (b.value < a.value) return false;
    const bool a_last = std::isnan(a.value);
    const bool b_last = std::isnan(b.value);
    return a_last == b_last ? a.place < b.place : b_last;
  }
};

Type infer(std::span<const Type> in, const Attributes& attributes) {
  const Type& out = dense(kName, in[0]);
  const int axis = checked_axis(kName, out.shape, attributes[0]);
  if (out.shape[axis] > (std::int64_t{1} << 24)) {
    raise(ErrorKind::value, "buropt.argsort: axis %d of an array of shape %s is too long", axis,
          out.shape.str().c_str());
  }
  return out;
}

// numbers: outer, n, inner. Scratch: the elements along the axis.
template <class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const std::int64_t inner = s.numbers[2];
  const std::int64_t outer = s.numbers[0] * s.rows(frame);
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  auto* items = reinterpret_cast<Item<T>*>(frame.scratch);
  for (std::int64_t o = 0; o < outer; ++o, in += n * inner, out += n * inner) {
    for (std::int64_t i = 0; i < inner; ++i) {
      for (std::int64_t k = 0; k < n; ++k) {
        items[k] = {in[k * inner + i], static_cast<std::int32_t>(k)};
      }
      std::sort(items, items + n);
      for (std::int64_t k = 0; k < n; ++k) out[k * inner + i] = static_cast<T>(items[k].place);
    }
  }
}

template <class T>
void choose(const LowerContext& c, Instruction& s) {
  const AroundAxis around = around_axis(c.in[0].shape, static_cast<int>(c.attributes[0][0]));
  s.numbers = {around.outer, around.n, around.inner};
  s.scratch_bytes = around.n * static_cast<std::int64_t>(sizeof(Item<T>));
  s.run = kernel<T>;
}

}  // namespace

std::vector<Op> argsort_ops() {
  Op op;
  op.name = kName;
  op.doc = "Places of the elements along an axis in ascending order.";
  op.attributes = {"axis"};
  op.infer = infer;
  op.reverse = [](Emitter&, const NodeView&, NodeId, std::span<NodeId>) {};
  op.forward = [](Emitter&, const NodeView&, std::span<const NodeId>) { return kNone; };
  op.lower = [](const LowerContext& c, Instruction& s) {
    c.out.dtype == DType::float32 ? choose<float>(c, s) : choose<double>(c, s);
  };
  return {op};
}

}  // namespace buropt
