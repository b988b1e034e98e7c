#include "graph/places.h"

namespace buropt {

NodeId PlaceArithmetic::map(NodeId places, const Shape& shape, const Extents& strides,
                            std::int64_t offset) {
  const auto own = shape.strides();
  bool same = offset == 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const auto k = static_cast<std::size_t>(axis);
    same = same && (shape[axis] == 1 || own[k] == strides[k]);
  }
  if (same) return places;
  return b_.emit("index_map", {places}, Attributes(extents_of(shape), strides, {offset}));
}

Extents PlaceArithmetic::spread(const Extents& offsets, std::int64_t n, std::int64_t stride) {
  Extents result;
  for (const std::int64_t offset : offsets) {
    for (std::int64_t i = 0; i < n; ++i) result.push_back(offset + i * stride);
  }
  return result;
}

NodeId PlaceArithmetic::spread(NodeId places, const Extents& offsets) {
  if (offsets == Extents{0}) return places;
  const auto n = static_cast<std::int64_t>(offsets.size());
  const NodeId steps = dispatch(b_.dtype(), [&](auto number) {
    using T = decltype(number);
    const std::vector<T> values(offsets.begin(), offsets.end());
    return b_.constant(reinterpret_cast<const std::byte*>(values.data()), Shape{1, n});
  });
  const NodeId all = b_.emit("add", {reshape(places, {count(places), 1}), steps});
  return reshape(all, {count(places) * n});
}

Extents PlaceArithmetic::broadcast_strides(const Shape& shape, const Shape& target) {
  const auto own = shape.strides();
  Extents strides(static_cast<std::size_t>(target.rank()), 0);
  const int skip = target.rank() - shape.rank();
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    strides[static_cast<std::size_t>(axis + skip)] = own[static_cast<std::size_t>(axis)];
  }
  return strides;
}

}  // namespace buropt
