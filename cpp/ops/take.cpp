// take {"axis"} and take_along_axis {"axis"}: elements picked by integers, which the graph holds as
// floats; and their transposes, which add a cotangent into zeros where the elements were picked.
//
// A negative index counts from the end. One that is out of range reads NaN, and nothing is added
// there. Additions to one place are made in the order of the samples and of the indices.
//
// The gradient of an embedding is the sum over the samples of arrays that are nearly all zeros:
// take_vjp_batch_sum adds the few rows of each sample straight to the accumulator.
#include <algorithm>
#include <limits>

#include "math/rows.h"
#include "ops/axes.h"
#include "ops/families.h"
#include "ops/picks.h"

namespace buropt {
namespace {

/// How the two families differ: the indices of `take` are an array of their own, those of
/// `take_along_axis` pick for every place apart from the axis anew.
struct Whole {
  static constexpr bool along = false;
  static constexpr std::string_view name = "take", vjp = "take_vjp", sum = "take_vjp_batch_sum";
};
struct Along {
  static constexpr bool along = true;
  static constexpr std::string_view name = "take_along_axis", vjp = "take_along_axis_vjp",
                                    sum = "take_along_axis_vjp_batch_sum";
};

template <class F>
Shape picked_shape(const Shape& whole, const Shape& indices, int axis) {
  if constexpr (F::along) {
    bool valid = whole.rank() == indices.rank();
    for (int a = 0; valid && a < whole.rank(); ++a) {
      valid = a == axis || whole[a] == indices[a];
    }
    if (!valid) {
      raise(ErrorKind::value,
            "buropt.take_along_axis: an array of shape %s and indices of shape %s must differ "
            "only along axis %d",
            whole.str().c_str(), indices.str().c_str(), axis);
    }
    return indices;
  } else {
    Shape result;
    for (int a = 0; a < axis; ++a) result.push_back(whole[a]);
    for (const std::int64_t extent : indices) result.push_back(extent);
    for (int a = axis + 1; a < whole.rank(); ++a) result.push_back(whole[a]);
    return result;
  }
}

template <class F>
Type infer_take(std::span<const Type> in, const Attributes& attributes) {
  Type out = dense(F::name, in[0]);
  const int axis = checked_axis(F::name, in[0].shape, attributes[0]);
  out.shape = picked_shape<F>(in[0].shape, dense(F::name, in[1]).shape, axis);
  out.batched = in[0].batched || in[1].batched;
  return out;
}

template <class F>
Type infer_vjp(std::span<const Type> in, const Attributes& attributes) {
  Type out = dense(F::vjp, in[0]);
  out.shape = Shape(attributes[1]);
  const int axis = checked_axis(F::vjp, out.shape, attributes[0]);
  if (!(picked_shape<F>(out.shape, dense(F::vjp, in[1]).shape, axis) == in[0].shape)) {
    raise(ErrorKind::value, "buropt.%.*s: operands of shapes %s and %s do not fit an array of %s",
          static_cast<int>(F::vjp.size()), F::vjp.data(), in[0].shape.str().c_str(),
          in[1].shape.str().c_str(), out.shape.str().c_str());
  }
  out.batched = in[0].batched || in[1].batched;
  return out;
}

template <class F>
void reverse_take(Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) {
  const Shape& whole = e.type(node.inputs[0]).shape;
  cotangents[0] = e.emit(F::vjp, {cotangent, node.inputs[1]},
                         Attributes(node.attributes[0], {whole.begin(), whole.end()}));
}

/// Of the transpose, summed over the samples or not.
template <class F>
void reverse_vjp(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  cotangents[0] = e.emit(F::name, {cotangent, node.inputs[1]}, Attributes(node.attributes[0]));
}

/// Indices that all samples share: the cotangents can be summed first.
template <class F>
NodeId sum_over_batch(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  if (!e.type(inputs[1]).batched) {
    return e.emit(F::vjp, {e.emit("batch_sum", {inputs[0]}), inputs[1]}, attributes);
  }
  return e.emit(find_op(F::sum), inputs, attributes);
}

// ---- kernels

/// Instruction::numbers: the whole array as (outer, extent, inner) around the axis, the indices
/// along it, and for both operands and the result the elements from one sample to the next (0 when
/// unbatched).
struct Numbers {
  std::int64_t outer, extent, inner, n;
  std::array<std::int64_t, 2> in_step;
  std::int64_t out_step;

  Numbers(const Shape& whole, const LowerContext& c, bool along) {
    const int axis = static_cast<int>(c.attributes[0][0]);
    const AroundAxis around = around_axis(whole, axis);
    outer = around.outer;
    extent = around.n;
    inner = around.inner;
    n = along ? c.in[1].shape[axis] : c.in[1].size();
    for (std::size_t k = 0; k < 2; ++k) in_step[k] = c.in[k].batched ? c.in[k].size() : 0;
    out_step = c.out.batched ? c.out.size() : 0;
  }
  explicit Numbers(const std::vector<std::int64_t>& from)
      : outer(from[0]),
        extent(from[1]),
        inner(from[2]),
        n(from[3]),
        in_step{from[4], from[5]},
        out_step(from[6]) {}
  std::vector<std::int64_t> list() const {
    return {outer, extent, inner, n, in_step[0], in_step[1], out_step};
  }
};

/// Calls f(place, whole, picked, count) for every run of elements that lie next to each other in
/// the whole array and in the picked one: `count` elements at `place` (-1: nowhere) of the part of
/// the array that starts at `whole`, and those at `picked`.
template <class F, class T, class Visit>
void for_picked(const Numbers& n, const T* indices, Visit&& visit) noexcept {
  for (std::int64_t o = 0; o < n.outer; ++o) {
    const std::int64_t whole = o * n.extent * n.inner;
    for (std::int64_t j = 0; j < n.n; ++j) {
      const std::int64_t picked = (o * n.n + j) * n.inner;
      if constexpr (F::along) {
        for (std::int64_t i = 0; i < n.inner; ++i) {
          const std::int64_t place = place_of(indices[picked + i], n.extent);
          visit(place < 0 ? -1 : whole + place * n.inner + i, picked + i, 1);
        }
      } else {
        const std::int64_t place = place_of(indices[j], n.extent);
        visit(place < 0 ? -1 : whole + place * n.inner, picked, n.inner);
      }
    }
  }
}

template <class F, class T>
void take_kernel(const Instruction& s, const Frame& frame) noexcept {
  const Numbers n(s.numbers);
  for (std::int64_t row = 0; row < s.rows(frame); ++row) {
    const T* whole = buffer_as<const T>(frame, s.in[0]) + row * n.in_step[0];
    const T* indices = buffer_as<const T>(frame, s.in[1]) + row * n.in_step[1];
    T* out = buffer_as<T>(frame, s.out) + row * n.out_step;
    for_picked<F>(n, indices, [&](std::int64_t from, std::int64_t to, std::int64_t count) noexcept {
      if constexpr (F::along) {
        out[to] = from < 0 ? kNaN<T> : whole[from];
      } else {
        // A call of memcpy would take longer than a short row.
        for_each_columns<T>(count, [&](auto at) {
          at.store(out + to, from < 0 ? Pack<T>(kNaN<T>) : at.load(whole + from));
        });
      }
    });
  }
}

template <class F, class T, bool sums>
void vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  const Numbers n(s.numbers);
  const std::int64_t rows = sums ? frame.rows : s.rows(frame);
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* cotangent = buffer_as<const T>(frame, s.in[0]) + row * n.in_step[0];
    const T* indices = buffer_as<const T>(frame, s.in[1]) + row * n.in_step[1];
    T* out = buffer_as<T>(frame, s.out) + row * n.out_step;
    if constexpr (!sums) std::fill_n(out, n.outer * n.extent * n.inner, T(0));
    for_picked<F>(n, indices, [&](std::int64_t to, std::int64_t from, std::int64_t count) noexcept {
      if (to < 0) return;
      if constexpr (F::along) {
        out[to] += cotangent[from];
      } else {
        for_each_columns<T>(count, [&](auto at) {
          at.store(out + to, at.load(out + to) + at.load(cotangent + from));
        });
      }
    });
  }
}

/// With indices that are constants, the elements are other names for the operand's.
template <class F, class Visit>
void for_known_picks(ElementEmitter& e, const Shape& whole, Visit&& visit) {
  const std::array types{e.in_type(0), e.in_type(1)};
  const LowerContext c{types, e.out_type(), e.attributes(), 1};
  std::vector<double> indices;
  for (std::int64_t i = 0; i < e.in_type(1).size(); ++i) {
    const std::optional<double> index = e.known(1, i);
    if (!index) return e.decline();
    indices.push_back(*index);
  }
  for_picked<F>(Numbers(whole, c, F::along), indices.data(), visit);
}

template <class F>
void take_elements(ElementEmitter& e) {
  for_known_picks<F>(
      e, e.in_type(0).shape, [&](std::int64_t from, std::int64_t to, std::int64_t count) {
        for (std::int64_t i = 0; i < count; ++i) {
          e.out(to + i, from < 0 ? e.constant(std::numeric_limits<double>::quiet_NaN())
                                 : e.in(0, from + i));
        }
      });
}

template <class F>
void vjp_elements(ElementEmitter& e) {
  std::vector<std::int32_t> total(static_cast<std::size_t>(e.out_type().size()), e.zero());
  for_known_picks<F>(e, e.out_type().shape,
                     [&](std::int64_t to, std::int64_t from, std::int64_t count) {
                       for (std::int64_t i = 0; i < count && to >= 0; ++i) {
                         std::int32_t& place = total[static_cast<std::size_t>(to + i)];
                         place = e.emit("add", {place, e.in(0, from + i)});
                       }
                     });
  for (std::size_t i = 0; i < total.size(); ++i) e.out(static_cast<std::int64_t>(i), total[i]);
}

template <class F>
std::vector<Op> family(std::string_view doc) {
  Op take;
  take.name = F::name;
  take.doc = doc;
  take.arity = 2;
  take.attributes = {"axis"};
  take.infer = infer_take<F>;
  take.picks = true;
  take.reverse = reverse_take<F>;
  take.linearity = Linearity::first;
  take.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = Numbers(c.in[0].shape, c, F::along).list();
    s.run = c.out.dtype == DType::float32 ? take_kernel<F, float> : take_kernel<F, double>;
  };
  take.elements = take_elements<F>;

  Op vjp;
  vjp.name = F::vjp;
  vjp.doc = "Zeros of the given shape with the first operand added at the indices.";
  vjp.arity = 2;
  vjp.attributes = {"axis", "shape"};
  vjp.derived = true;
  vjp.infer = infer_vjp<F>;
  vjp.reverse = reverse_vjp<F>;
  vjp.linearity = Linearity::first;
  vjp.batch_sum = sum_over_batch<F>;
  vjp.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = Numbers(c.out.shape, c, F::along).list();
    s.run =
        c.out.dtype == DType::float32 ? vjp_kernel<F, float, false> : vjp_kernel<F, double, false>;
  };
  vjp.elements = vjp_elements<F>;

  Op sum = vjp;
  sum.name = F::sum;
  sum.doc = "The same, summed over the samples.";
  sum.batching = Batching::reduces;
  sum.infer = [](std::span<const Type> in, const Attributes& attributes) {
    Type out = infer_vjp<F>(in, attributes);
    out.batched = false;
    return out;
  };
  sum.batch_sum = nullptr;
  sum.elements = nullptr;
  sum.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = Numbers(c.out.shape, c, F::along).list();
    s.run =
        c.out.dtype == DType::float32 ? vjp_kernel<F, float, true> : vjp_kernel<F, double, true>;
  };
  return {take, vjp, sum};
}

}  // namespace

std::vector<Op> take_ops() {
  std::vector<Op> ops = family<Whole>("Elements along an axis, picked by integers.");
  for (const Op& op : family<Along>("Along an axis, one element for each integer of an array.")) {
    ops.push_back(op);
  }
  return ops;
}

}  // namespace buropt
