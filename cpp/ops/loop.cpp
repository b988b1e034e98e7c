#include "ops/loop.h"

#include <algorithm>
#include <string>

namespace buropt {
namespace {

/// One axis of the walk: extent (of the batch axis: unknown, kept as 1) and a stride per operand.
struct Axis {
  std::int64_t extent;
  bool batch;
  std::vector<std::int64_t> strides;
};

/// The axes before merging: the batch axis, then the sample's axes that are longer than 1.
std::vector<Axis> list_axes(std::span<const Type> in, const Type& out) {
  std::vector<Axis> axes;
  if (out.batched) {
    Axis batch{1, true, {}};
    for (const Type& type : in) batch.strides.push_back(type.batched ? type.size() : 0);
    axes.push_back(batch);
  }
  for (int axis = 0; axis < out.shape.rank(); ++axis) {
    const std::int64_t extent = out.shape[axis];
    if (extent == 1) continue;
    Axis next{extent, false, {}};
    for (const Type& type : in) {
      const int own = axis - (out.shape.rank() - type.shape.rank());
      const bool present = own >= 0 && type.shape[own] != 1;
      next.strides.push_back(present ? type.shape.strides()[static_cast<std::size_t>(own)] : 0);
    }
    axes.push_back(next);
  }
  return axes;
}

bool can_merge(const Axis& outer, const Axis& inner) {
  for (std::size_t k = 0; k < outer.strides.size(); ++k) {
    if (outer.strides[k] != inner.strides[k] * inner.extent) return false;
  }
  return true;
}

}  // namespace

std::vector<std::int64_t> Loop::numbers() const {
  std::vector<std::int64_t> result{outer, outer_batched, inner, inner_batched};
  for (std::size_t k = 0; k < outer_strides.size(); ++k) {
    result.push_back(outer_strides[k]);
    result.push_back(inner_strides[k]);
  }
  return result;
}

Shape broadcast_shapes(std::string_view op, std::span<const Type> in) {
  Shape result;
  int rank = 0;
  for (const Type& type : in) rank = std::max(rank, type.shape.rank());
  for (int axis = 0; axis < rank; ++axis) {
    std::int64_t extent = 1;
    for (const Type& type : in) {
      const int own = axis - (rank - type.shape.rank());
      if (own < 0 || type.shape[own] == 1) continue;
      if (extent != 1 && extent != type.shape[own]) {
        std::string shapes;
        for (const Type& t : in) shapes += (shapes.empty() ? "" : " and ") + t.shape.str();
        raise(ErrorKind::value, "buropt.%.*s: shapes %s do not broadcast together",
              static_cast<int>(op.size()), op.data(), shapes.c_str());
      }
      extent = type.shape[own];
    }
    result.push_back(extent);
  }
  return result;
}

std::optional<Loop> plan_loop(std::span<const Type> in, const Type& out) {
  std::vector<Axis> merged;
  for (Axis& axis : list_axes(in, out)) {
    if (!merged.empty() && can_merge(merged.back(), axis)) {
      merged.back().extent *= axis.extent;
      merged.back().strides = axis.strides;
    } else {
      merged.push_back(axis);
    }
  }
  if (merged.size() > 2) return std::nullopt;
  Loop loop;
  loop.outer_strides.assign(in.size(), 0);
  loop.inner_strides.assign(in.size(), 0);
  if (!merged.empty()) {
    const Axis& inner = merged.back();
    loop.inner = inner.extent;
    loop.inner_batched = inner.batch;
    loop.inner_strides = inner.strides;
  }
  if (merged.size() == 2) {
    loop.outer = merged.front().extent;
    loop.outer_batched = merged.front().batch;
    loop.outer_strides = merged.front().strides;
  }
  const auto contiguous = [](std::int64_t stride) { return stride == 0 || stride == 1; };
  if (!std::all_of(loop.inner_strides.begin(), loop.inner_strides.end(), contiguous)) {
    return std::nullopt;
  }
  return loop;
}

}  // namespace buropt
