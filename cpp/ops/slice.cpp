// slice {"starts", "sizes", "steps"}, one entry per axis, and its transpose slice_vjp, which writes
// into zeros.
#include <algorithm>

#include "ops/families.h"
#include "ops/strided.h"

namespace buropt {
namespace {

std::span<const std::int64_t> extents_of(const Shape& shape) {
  return {shape.begin(), static_cast<std::size_t>(shape.rank())};
}

/// The view that a slice takes of an array of this shape.
StridedView slice_view(const Shape& whole, const Shape& part, std::span<const std::int64_t> starts,
                       std::span<const std::int64_t> steps) {
  StridedView view;
  view.extents = part;
  const auto strides = whole.strides();
  for (std::size_t axis = 0; axis < starts.size(); ++axis) {
    // Where there is nothing to reach, starts and steps may be any numbers.
    if (part.size() > 0) view.offset += starts[axis] * strides[axis];
    const bool has_steps = part[static_cast<int>(axis)] > 1;
    view.strides.push_back(has_steps ? steps[axis] * strides[axis] : strides[axis]);
  }
  return view;
}

/// Whether elements start, start + step, ..., so many of them, lie on an axis.
bool fits(std::int64_t start, std::int64_t size, std::int64_t step, std::int64_t extent) {
  if (size < 0 || start < 0 || start >= extent) return size == 0;
  if (step == 0 || size <= 1) return true;
  const std::int64_t room =
      step > 0 ? (extent - 1 - start) / step : start / -std::max(step, -extent);
  return size - 1 <= room;
}

/// Raises unless the slice lies in the whole.
void check_slice(std::string_view name, const Shape& whole, std::span<const std::int64_t> starts,
                 std::span<const std::int64_t> sizes, std::span<const std::int64_t> steps) {
  const auto rank = static_cast<std::size_t>(whole.rank());
  bool valid = starts.size() == rank && sizes.size() == rank && steps.size() == rank;
  for (std::size_t axis = 0; valid && axis < rank; ++axis) {
    valid = fits(starts[axis], sizes[axis], steps[axis], whole[static_cast<int>(axis)]);
  }
  if (valid) return;
  raise(ErrorKind::index, "buropt.%.*s: starts %s, sizes %s, steps %s leave the array of shape %s",
        static_cast<int>(name.size()), name.data(), Shape(starts).str().c_str(),
        Shape(sizes).str().c_str(), Shape(steps).str().c_str(), whole.str().c_str());
}

Type infer_slice(std::span<const Type> in, const Attributes& attributes) {
  Type out = in[0];
  if (in[0].csr) {
    raise(ErrorKind::type,
          "buropt.slice: a sparse row only supports products with a vector or matrix (a @ x)");
  }
  check_slice("slice", in[0].shape, attributes[0], attributes[1], attributes[2]);
  out.shape = Shape(attributes[1]);
  return out;
}

void reverse_slice(Emitter& e, const NodeView& node, NodeId cotangent,
                   std::span<NodeId> cotangents) {
  const Shape& whole = e.type(node.inputs[0]).shape;
  cotangents[0] =
      e.emit("slice_vjp", {cotangent},
             Attributes(node.attributes[0], {whole.begin(), whole.end()}, node.attributes[2]));
}

Type infer_slice_vjp(std::span<const Type> in, const Attributes& attributes) {
  Type out = in[0];
  out.shape = Shape(attributes[1]);
  check_slice("slice_vjp", out.shape, attributes[0], extents_of(in[0].shape), attributes[2]);
  return out;
}

void reverse_slice_vjp(Emitter& e, const NodeView& node, NodeId cotangent,
                       std::span<NodeId> cotangents) {
  const Shape& part = e.type(node.inputs[0]).shape;
  cotangents[0] =
      e.emit("slice", {cotangent},
             Attributes(node.attributes[0], {part.begin(), part.end()}, node.attributes[2]));
}

// ---- slices_vjp {"starts", "shape", "steps"}: the sum of many slice_vjp, in one pass. The lists
// have the starts and steps of all slices one after the other.

/// The view of operand k.
StridedView view_of(std::size_t k, const Shape& part, const Attributes& attributes) {
  const auto rank = attributes[1].size();
  const auto own = [&](int list) { return std::span(attributes[list]).subspan(k * rank, rank); };
  return slice_view(Shape(attributes[1]), part, own(0), own(2));
}

template <class T>
void slices_vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* n = s.numbers.data();
  T* out = buffer_as<T>(frame, s.out);
  const std::int64_t size = *n++;
  std::fill_n(out, s.rows(frame) * size, T(0));
  for (const std::int32_t in : s.in) {
    add_to_view(n, buffer_as<const T>(frame, in), out, s.rows(frame));
    n += view_length(n);
  }
}

/// The same for samples of D numbers, each of which comes from an operand of its own.
template <class T, std::size_t D>
void interleave_kernel(const Instruction& s, const Frame& frame) noexcept {
  T* out = buffer_as<T>(frame, s.out);
  std::array<const T*, D> in;
  for (std::size_t k = 0; k < D; ++k) {
    in[static_cast<std::size_t>(s.numbers[k])] = buffer_as<const T>(frame, s.in[k]);
  }
  for (std::int64_t row = 0; row < frame.rows; ++row, out += D) {
    for (std::size_t k = 0; k < D; ++k) out[k] = in[k][row];
  }
}

/// Whether every number of a sample comes from an operand of its own; `places` gets which.
bool interleaves(const LowerContext& c, std::vector<std::int64_t>& places) {
  const auto size = static_cast<std::size_t>(c.out.size());
  if (!c.out.batched || c.in.size() != size) return false;
  std::vector<bool> taken(size, false);
  for (std::size_t k = 0; k < size; ++k) {
    if (!c.in[k].batched || c.in[k].size() != 1) return false;
    places.push_back(view_of(k, c.in[k].shape, c.attributes).place(0));
    if (taken[static_cast<std::size_t>(places.back())]) return false;
    taken[static_cast<std::size_t>(places.back())] = true;
  }
  return true;
}

template <class T>
Kernel interleave(std::size_t size) {
  switch (size) {
    case 2:
      return interleave_kernel<T, 2>;
    case 3:
      return interleave_kernel<T, 3>;
    case 4:
      return interleave_kernel<T, 4>;
    default:
      return nullptr;
  }
}

Op slices_vjp_op() {
  Op op;
  op.name = "slices_vjp";
  op.doc = "Zeros of the given shape with each operand added to its slice.";
  op.arity = -1;
  op.attributes = {"starts", "shape", "steps"};
  op.derived = true;
  op.infer = [](std::span<const Type> in, const Attributes& attributes) {
    Type out = in[0];
    out.shape = Shape(attributes[1]);
    const std::size_t rank = attributes[1].size();
    const bool valid =
        attributes[0].size() == in.size() * rank && attributes[2].size() == in.size() * rank;
    if (!valid) raise(ErrorKind::index, "buropt.slices_vjp: not a start and a step for each axis");
    for (std::size_t k = 0; k < in.size(); ++k) {
      const auto own = [&](int list) {
        return std::span(attributes[list]).subspan(k * rank, rank);
      };
      check_slice("slices_vjp", out.shape, own(0), extents_of(in[k].shape), own(2));
      out.batched = out.batched || in[k].batched;
    }
    return out;
  };
  op.linearity = Linearity::jointly;
  op.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) {
    const std::size_t rank = node.attributes[1].size();
    const auto own = [&](int list, std::size_t k) {
      const auto begin = node.attributes[list].begin() + static_cast<std::ptrdiff_t>(k * rank);
      return std::vector<std::int64_t>(begin, begin + static_cast<std::ptrdiff_t>(rank));
    };
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const Shape part = e.type(node.inputs[k]).shape;
      cotangents[k] = e.emit("slice", {cotangent},
                             Attributes(own(0, k), {part.begin(), part.end()}, own(2, k)));
    }
  };
  op.lower = [](const LowerContext& c, Instruction& s) {
    const bool is_single = c.out.dtype == DType::float32;
    if (interleaves(c, s.numbers)) {
      s.run = is_single ? interleave<float>(c.in.size()) : interleave<double>(c.in.size());
      if (s.run != nullptr) return;
    }
    s.numbers = {c.out.size()};
    for (std::size_t k = 0; k < c.in.size(); ++k) {
      append_view(view_of(k, c.in[k].shape, c.attributes), c.in[k], c.out, s.numbers);
    }
    s.run = is_single ? slices_vjp_kernel<float> : slices_vjp_kernel<double>;
  };
  op.elements = [](ElementEmitter& e) {
    std::vector<std::int32_t> total(static_cast<std::size_t>(e.out_type().size()), e.zero());
    for (int k = 0; k < e.arity(); ++k) {
      const StridedView view =
          view_of(static_cast<std::size_t>(k), e.in_type(k).shape, e.attributes());
      for (std::int64_t i = 0; i < e.in_type(k).size(); ++i) {
        std::int32_t& place = total[static_cast<std::size_t>(view.place(i))];
        place = e.emit("add", {place, e.in(k, i)});
      }
    }
    for (std::size_t i = 0; i < total.size(); ++i) e.out(static_cast<std::int64_t>(i), total[i]);
  };
  return op;
}

}  // namespace

std::vector<Op> slice_ops() {
  Op slice;
  slice.name = "slice";
  slice.doc = "Part of an array: x[start:stop:step, ...].";
  slice.attributes = {"starts", "sizes", "steps"};
  slice.picks = true;
  slice.infer = infer_slice;
  slice.linearity = Linearity::jointly;
  slice.reverse = reverse_slice;
  slice.lower = [](const LowerContext& c, Instruction& s) {
    lower_gather(slice_view(c.in[0].shape, c.out.shape, c.attributes[0], c.attributes[2]), c, s);
  };
  slice.elements = [](ElementEmitter& e) {
    gather_elements(
        slice_view(e.in_type(0).shape, e.out_type().shape, e.attributes()[0], e.attributes()[2]),
        e);
  };

  Op transpose;
  transpose.name = "slice_vjp";
  transpose.doc = "Zeros of the given shape with the operand written into the slice.";
  transpose.attributes = {"starts", "shape", "steps"};
  transpose.derived = true;
  transpose.infer = infer_slice_vjp;
  transpose.linearity = Linearity::jointly;
  transpose.reverse = reverse_slice_vjp;
  transpose.batch_sum = [](Emitter& e, std::span<const NodeId> inputs,
                           const Attributes& attributes) {
    return e.emit("slice_vjp", {e.emit("batch_sum", {inputs[0]})}, attributes);
  };
  transpose.lower = [](const LowerContext& c, Instruction& s) {
    lower_scatter(slice_view(c.out.shape, c.in[0].shape, c.attributes[0], c.attributes[2]), c, s);
  };
  transpose.elements = [](ElementEmitter& e) {
    scatter_elements(
        slice_view(e.out_type().shape, e.in_type(0).shape, e.attributes()[0], e.attributes()[2]),
        e);
  };
  return {slice, transpose, slices_vjp_op()};
}

}  // namespace buropt
