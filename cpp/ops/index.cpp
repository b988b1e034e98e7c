// index_map and index_in_slice: arithmetic with places in arrays, on integers that the graph holds
// as floats. Derivatives restricted to some coordinates (graph/restrict.cpp) are made of it.
//
//   index_map {extents}, {strides}, {offset}
//     offset + sum c[axis] * stride[axis], where c are the coordinates of the row-major place x in
//     an array of these extents
//   index_in_slice {shape}, {starts}, {sizes, steps}
//     the place in slice(array of that shape) of what has the place x in the array; -1 outside
#include <algorithm>

#include "ops/axes.h"
#include "ops/families.h"

namespace buropt {
namespace {

bool are_positive(const std::vector<std::int64_t>& numbers) {
  return std::all_of(numbers.begin(), numbers.end(), [](std::int64_t n) { return n > 0; });
}

void check(bool valid, const char* name) {
  if (!valid) raise(ErrorKind::value, "buropt.%s: its attributes are of no array", name);
}

Type infer_map(std::span<const Type> in, const Attributes& attributes) {
  const auto& [extents, strides, offset] = attributes.lists;
  check(strides.size() == extents.size() && offset.size() <= 1 && are_positive(extents),
        "index_map");
  return dense("index_map", in[0]);
}

Type infer_slice(std::span<const Type> in, const Attributes& attributes) {
  const auto& [shape, starts, sizes_and_steps] = attributes.lists;
  const std::size_t rank = shape.size();
  bool valid = starts.size() == rank && sizes_and_steps.size() == 2 * rank && are_positive(shape);
  for (std::size_t axis = 0; valid && axis < rank; ++axis) {
    valid = starts[axis] >= 0 && sizes_and_steps[rank + axis] != 0;
  }
  check(valid, "index_in_slice");
  return dense("index_in_slice", in[0]);
}

template <class T, class F>
void map_places(const Instruction& s, const Frame& frame, F&& place) noexcept {
  const std::int64_t size = s.numbers[0] * s.rows(frame);
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  for (std::int64_t i = 0; i < size; ++i) {
    out[i] = static_cast<T>(place(static_cast<std::int64_t>(in[i])));
  }
}

// numbers: size, rank, offset, then extents and strides.
template <class T>
void map_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t rank = s.numbers[1];
  const std::int64_t* extents = s.numbers.data() + 3;
  const std::int64_t* strides = extents + rank;
  map_places<T>(s, frame, [&](std::int64_t place) {
    std::int64_t result = s.numbers[2];
    for (std::int64_t axis = rank - 1; axis >= 0; --axis) {
      result += place % extents[axis] * strides[axis];
      place /= extents[axis];
    }
    return result;
  });
}

// numbers: size, rank, then shape, starts, sizes and steps.
template <class T>
void slice_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t rank = s.numbers[1];
  const std::int64_t* shape = s.numbers.data() + 2;
  const std::int64_t* starts = shape + rank;
  const std::int64_t* sizes = starts + rank;
  const std::int64_t* steps = sizes + rank;
  map_places<T>(s, frame, [&](std::int64_t place) {
    std::int64_t result = 0;
    std::int64_t stride = 1;
    for (std::int64_t axis = rank - 1; axis >= 0; --axis) {
      const std::int64_t distance = place % shape[axis] - starts[axis];
      place /= shape[axis];
      const std::int64_t coordinate = distance / steps[axis];
      const bool inside =
          distance % steps[axis] == 0 && coordinate >= 0 && coordinate < sizes[axis];
      if (!inside) return std::int64_t{-1};
      result += coordinate * stride;
      stride *= sizes[axis];
    }
    return result;
  });
}

Op index_op(std::string_view name, std::string_view doc, decltype(Op::infer) infer) {
  Op op;
  op.name = name;
  op.doc = doc;
  op.derived = true;
  op.in_place = true;
  op.infer = infer;
  op.reverse = [](Emitter&, const NodeView&, NodeId, std::span<NodeId>) {};
  op.forward = [](Emitter&, const NodeView&, std::span<const NodeId>) { return kNone; };
  return op;
}

void append(std::vector<std::int64_t>& numbers, const std::vector<std::int64_t>& more) {
  numbers.insert(numbers.end(), more.begin(), more.end());
}

}  // namespace

std::vector<Op> index_ops() {
  Op map = index_op("index_map", "Places in one array as places in another.", infer_map);
  map.attributes = {"extents", "strides", "offset"};
  map.lower = [](const LowerContext& c, Instruction& s) {
    const auto rank = static_cast<std::int64_t>(c.attributes[0].size());
    s.numbers = {c.out.size(), rank, c.attributes[2].empty() ? 0 : c.attributes[2][0]};
    append(s.numbers, c.attributes[0]);
    append(s.numbers, c.attributes[1]);
    s.run = c.out.dtype == DType::float32 ? map_kernel<float> : map_kernel<double>;
  };

  Op slice = index_op("index_in_slice", "Places in an array as places in a slice of it, or -1.",
                      infer_slice);
  slice.attributes = {"shape", "starts", "sizes_and_steps"};
  slice.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = {c.out.size(), static_cast<std::int64_t>(c.attributes[0].size())};
    for (int list = 0; list < 3; ++list) append(s.numbers, c.attributes[list]);
    s.run = c.out.dtype == DType::float32 ? slice_kernel<float> : slice_kernel<double>;
  };
  return {map, slice};
}

}  // namespace buropt
