#include "ops/axes.h"

#include <string>

namespace buropt {

const Type& dense(std::string_view name, const Type& in) {
  if (in.csr) {
    raise(ErrorKind::type,
          "buropt.%.*s: a sparse row only supports products with a vector or matrix (a @ x)",
          static_cast<int>(name.size()), name.data());
  }
  return in;
}

int checked_axis(std::string_view name, const Shape& shape,
                 const std::vector<std::int64_t>& attribute) {
  const std::int64_t axis = attribute.empty() ? -1 : attribute[0];
  if (axis < 0 || axis >= shape.rank()) {
    raise(ErrorKind::value, "buropt.%.*s: axis %lld is out of range for an array of shape %s",
          static_cast<int>(name.size()), name.data(), static_cast<long long>(axis),
          shape.str().c_str());
  }
  return static_cast<int>(axis);
}

AroundAxis around_axis(const Shape& shape, int axis) {
  return {shape.product(0, axis), shape[axis], shape.product(axis + 1, shape.rank())};
}

std::vector<bool> reduced_axes(std::string_view name, const Shape& shape,
                               const Attributes& attributes) {
  std::vector<bool> reduced(static_cast<std::size_t>(shape.rank()), false);
  for (const std::int64_t axis : attributes[0]) {
    reduced[static_cast<std::size_t>(checked_axis(name, shape, {axis}))] = true;
  }
  return reduced;
}

Type infer_reduction(std::string_view name, const Type& in, const Attributes& attributes) {
  Type out = dense(name, in);
  const std::vector<bool> reduced = reduced_axes(name, in.shape, attributes);
  out.shape = Shape();
  for (int axis = 0; axis < in.shape.rank(); ++axis) {
    if (!reduced[static_cast<std::size_t>(axis)])
      out.shape.push_back(in.shape[axis]);
    else if (attributes[1].at(0) != 0)
      out.shape.push_back(1);
  }
  return out;
}

std::vector<std::int64_t> kept_shape(const Shape& shape, const std::vector<bool>& reduced) {
  std::vector<std::int64_t> kept(shape.begin(), shape.end());
  for (std::size_t axis = 0; axis < kept.size(); ++axis) {
    if (reduced[axis]) kept[axis] = 1;
  }
  return kept;
}

std::optional<AroundAxis> around_reduced(const Shape& shape, const std::vector<bool>& reduced) {
  std::array<std::int64_t, 3> extents{1, 1, 1};
  std::size_t group = 0;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 1) continue;
    if (reduced[static_cast<std::size_t>(axis)] != (group == 1)) ++group;
    if (group == extents.size()) return std::nullopt;
    extents[group] *= shape[axis];
  }
  return AroundAxis{extents[0], extents[1], extents[2]};
}

NodeId without_nan(Emitter& e, NodeId mask, NodeId contribution) {
  const NodeId zero = e.constant(0, e.type(contribution).dtype);
  const NodeId is_nan = e.emit("not_equal", {contribution, contribution});
  return e.emit("where", {e.emit("logical_and", {mask, is_nan}), zero, contribution});
}

NodeId gather_reduced_axes(Emitter& e, std::string_view name, NodeId input,
                           const Attributes& attributes) {
  const Type type = e.type(input);
  const Shape result = infer_reduction(name, type, attributes).shape;
  const std::vector<bool> reduced = reduced_axes(name, type.shape, attributes);
  if (around_reduced(type.shape, reduced)) return kNone;
  std::vector<std::int64_t> order;
  for (const bool wanted : {false, true}) {
    for (int axis = 0; axis < type.shape.rank(); ++axis) {
      if (reduced[static_cast<std::size_t>(axis)] == wanted) order.push_back(axis);
    }
  }
  std::vector<std::int64_t> last(attributes[0].size());
  for (std::size_t k = 0; k < last.size(); ++k) {
    last[k] = static_cast<std::int64_t>(order.size() - last.size() + k);
  }
  const NodeId moved = e.emit("transpose", {input}, Attributes(order));
  const NodeId value = e.emit(name, {moved}, Attributes(last, {0}));
  return e.emit("reshape", {value}, Attributes({result.begin(), result.end()}));
}

}  // namespace buropt
