// Axes of a sample: the words that reductions, scans and gathers share.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "ops/op.h"

namespace buropt {

/// The operand's type; raises for a sparse row, which only products take.
const Type& dense(std::string_view name, const Type& in);

/// The one axis that an attribute names; raises when the array does not have it.
int checked_axis(std::string_view name, const Shape& shape,
                 const std::vector<std::int64_t>& attribute);

/// An array as (outer, n, inner) around one axis.
struct AroundAxis {
  std::int64_t outer, n, inner;
};
AroundAxis around_axis(const Shape& shape, int axis);

/// A reduction's attributes are {"axes", "keepdims"}. Which axes it takes away; raises for one that
/// the array does not have.
std::vector<bool> reduced_axes(std::string_view name, const Shape& shape,
                               const Attributes& attributes);

/// The type of a reduction's result.
Type infer_reduction(std::string_view name, const Type& in, const Attributes& attributes);

/// The result's shape with every reduced axis kept at extent 1.
std::vector<std::int64_t> kept_shape(const Shape& shape, const std::vector<bool>& reduced);

/// Axes in runs, merged: (kept, reduced, kept), or nothing when the reduced axes are not neighbours
/// (axes of extent 1 are nobody's).
std::optional<AroundAxis> around_reduced(const Shape& shape, const std::vector<bool>& reduced);

/// 0 in place of NaN where the mask holds, for contributions of guarded nodes (NodeView). What is a
/// number stays: it is 0 there already, and must keep its own derivative by the cotangent.
NodeId without_nan(Emitter& e, NodeId mask, NodeId contribution);

/// simplify of a reduction whose kernel wants (kept, reduced, kept): moves the reduced axes to the
/// end if need be.
NodeId gather_reduced_axes(Emitter& e, std::string_view name, NodeId input,
                           const Attributes& attributes);

}  // namespace buropt
