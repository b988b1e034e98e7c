// max, min {"axes"}, {"keepdims"} and argmax, argmin {"axes"}, {"keepdims"}, over axes of the
// sample.
//
// As in NumPy, NaN is larger than everything for max and smaller for min, and the first of equal
// elements is argmax. All elements equal to the extremum share its cotangent equally; if it is NaN,
// so is every slope, so that this NaN does not come with a finite derivative.
#include <algorithm>
#include <cmath>
#include <limits>

#include "base/simd.h"
#include "ops/axes.h"
#include "ops/families.h"

namespace buropt {
namespace {

struct Max {
  static constexpr std::string_view name = "max", arg_name = "argmax", pairwise = "maximum";
  template <class V>
  static V better(V a, V b) {
    return maximum(a, b);
  }
  template <class T>
  static bool beats(T a, T b) {
    return a > b;
  }
};
struct Min {
  static constexpr std::string_view name = "min", arg_name = "argmin", pairwise = "minimum";
  template <class V>
  static V better(V a, V b) {
    return minimum(a, b);
  }
  template <class T>
  static bool beats(T a, T b) {
    return a < b;
  }
};

Type infer(std::string_view name, const Type& in, const Attributes& attributes) {
  const Type out = infer_reduction(name, in, attributes);
  if (in.size() == 0 && out.size() > 0) {
    raise(ErrorKind::value, "buropt.%.*s: there is nothing to choose from in an array of shape %s",
          static_cast<int>(name.size()), name.data(), in.shape.str().c_str());
  }
  return out;
}

/// (kept, reduced, kept): the builder has moved any other axes.
AroundAxis around(std::string_view name, const Shape& shape, const Attributes& attributes) {
  const auto found = around_reduced(shape, reduced_axes(name, shape, attributes));
  BUROPT_ASSERT(found.has_value());
  return *found;
}

template <class F>
NodeId simplify(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const Type type = e.type(inputs[0]);
  const Shape result = infer(F::name, type, attributes).shape;
  if (result.size() == type.size() && type.size() > 0) {
    return e.emit("reshape", {inputs[0]}, Attributes({result.begin(), result.end()}));
  }
  return gather_reduced_axes(e, F::name, inputs[0], attributes);
}

template <class F>
void reverse(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  const Shape whole = e.type(node.inputs[0]).shape;
  const Attributes kept(kept_shape(whole, reduced_axes(F::name, whole, node.attributes)));
  cotangents[0] = e.emit(
      "extremum_vjp",
      {e.emit("reshape", {cotangent}, kept), node.inputs[0], e.emit("reshape", {node.id}, kept)},
      Attributes(node.attributes[0]));
}

// ---- kernels of the value. numbers: outer, n, inner, and the elements of a sample on both sides.

/// out (inner) = extremum of n rows, `inner` elements apart.
template <class F, class T>
void reduce_rows(const T* in, std::int64_t n, std::int64_t inner, T* out) noexcept {
  constexpr int lanes = Pack<T>::size;
  std::int64_t i = 0;
  for (; i + lanes <= inner; i += lanes) {
    Pack<T> best = Pack<T>::load(in + i);
    for (std::int64_t r = 1; r < n; ++r) {
      best = F::better(best, Pack<T>::load(in + r * inner + i));
    }
    best.store(out + i);
  }
  for (; i < inner; ++i) {
    T best = in[i];
    for (std::int64_t r = 1; r < n; ++r) best = F::better(best, in[r * inner + i]);
    out[i] = best;
  }
}

template <class F, class T>
T reduce_contiguous(const T* in, std::int64_t n) noexcept {
  constexpr int lanes = Pack<T>::size;
  T best = in[0];
  std::int64_t i = 1;
  if (n >= lanes) {
    Pack<T> bests = Pack<T>::load(in);
    for (i = lanes; i + lanes <= n; i += lanes) bests = F::better(bests, Pack<T>::load(in + i));
    for (int k = 0; k < lanes; ++k) best = F::better(best, bests[k]);
  }
  for (; i < n; ++i) best = F::better(best, in[i]);
  return best;
}

template <class F, class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const std::int64_t inner = s.numbers[2];
  const std::int64_t outer = s.numbers[0] * s.rows(frame);
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  for (std::int64_t o = 0; o < outer; ++o, in += n * inner, out += inner) {
    if (inner == 1)
      *out = reduce_contiguous<F>(in, n);
    else
      reduce_rows<F>(in, n, inner, out);
  }
}

template <class F, class T>
void arg_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const std::int64_t inner = s.numbers[2];
  const std::int64_t outer = s.numbers[0] * s.rows(frame);
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  for (std::int64_t o = 0; o < outer; ++o, in += n * inner, out += inner) {
    for (std::int64_t i = 0; i < inner; ++i) {
      std::int64_t best = 0;
      for (std::int64_t r = 1; r < n; ++r) {
        const T leader = in[best * inner + i];
        const T next = in[r * inner + i];
        if (F::beats(next, leader) || (std::isnan(next) && !std::isnan(leader))) best = r;
      }
      out[i] = static_cast<T>(best);
    }
  }
}

void set_numbers(std::string_view name, const LowerContext& c, Instruction& s) {
  const auto [outer, n, inner] = around(name, c.in[0].shape, c.attributes);
  // An empty array has no leader to start from.
  s.numbers = {c.out.size() == 0 ? 0 : outer, n, inner};
}

template <class F>
void elements(ElementEmitter& e) {
  const auto [outer, n, inner] = around(F::name, e.in_type(0).shape, e.attributes());
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      std::int32_t best = e.in(0, o * n * inner + i);
      for (std::int64_t r = 1; r < n; ++r) {
        best = e.emit(F::pairwise, {best, e.in(0, (o * n + r) * inner + i)});
      }
      e.out(o * inner + i, best);
    }
  }
}

// ---- extremum_vjp {"axes"}: cotangent, array and extremum, the first and the last with the
// reduced axes at extent 1. A cotangent of 0 gives 0, also where the extremum is NaN.

constexpr std::string_view kVjp = "extremum_vjp";

Type infer_vjp(std::span<const Type> in, const Attributes& attributes) {
  Type out = dense(kVjp, in[1]);
  const Shape kept(kept_shape(out.shape, reduced_axes(kVjp, out.shape, attributes)));
  if (!(in[0].shape == kept && in[2].shape == kept)) {
    raise(ErrorKind::value, "buropt.extremum_vjp: shapes %s, %s and %s do not fit",
          in[0].shape.str().c_str(), out.shape.str().c_str(), in[2].shape.str().c_str());
  }
  for (const Type& type : in) out.batched = out.batched || type.batched;
  return out;
}

NodeId expand(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const NodeId cotangent = inputs[0];
  const NodeId extremum = inputs[2];
  const DType dtype = e.type(cotangent).dtype;
  const NodeId zero = e.constant(0, dtype);
  const NodeId nan = e.constant(std::numeric_limits<double>::quiet_NaN(), dtype);
  const NodeId is_nan = e.emit("not_equal", {extremum, extremum});
  const NodeId equal = e.emit("equal", {inputs[1], extremum});
  const NodeId count = e.emit("sum", {equal}, Attributes(attributes[0], {1}));
  const NodeId share = e.emit("divide", {cotangent, e.emit("where", {is_nan, nan, count})});
  const NodeId nothing = e.emit("logical_and", {is_nan, e.emit("equal", {cotangent, zero})});
  const NodeId used = e.emit("where", {nothing, zero, share});
  return e.emit("where", {e.emit("logical_or", {equal, is_nan}), used, zero});
}

// numbers: outer, n, inner, then by operand the elements from one sample to the next (0 when
// unbatched).
template <class T>
void vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t outer = s.numbers[0];
  const std::int64_t n = s.numbers[1];
  const std::int64_t inner = s.numbers[2];
  T* out = buffer_as<T>(frame, s.out);
  for (std::int64_t row = 0; row < s.rows(frame); ++row) {
    const T* cotangent = buffer_as<const T>(frame, s.in[0]) + row * s.numbers[3];
    const T* in = buffer_as<const T>(frame, s.in[1]) + row * s.numbers[4];
    const T* extremum = buffer_as<const T>(frame, s.in[2]) + row * s.numbers[5];
    for (std::int64_t o = 0; o < outer; ++o, in += n * inner, out += n * inner) {
      for (std::int64_t i = 0; i < inner; ++i) {
        const T best = *extremum++;
        const T given = *cotangent++;
        T count = 0;
        for (std::int64_t r = 0; r < n; ++r) count += in[r * inner + i] == best ? T(1) : T(0);
        const bool all = std::isnan(best);
        const T share = !all         ? given / count
                        : given == 0 ? T(0)
                                     : std::numeric_limits<T>::quiet_NaN();
        for (std::int64_t r = 0; r < n; ++r) {
          out[r * inner + i] = all || in[r * inner + i] == best ? share : T(0);
        }
      }
    }
  }
}

void lower_vjp(const LowerContext& c, Instruction& s) {
  const auto [outer, n, inner] = around(kVjp, c.out.shape, c.attributes);
  s.numbers = {outer, n, inner};
  for (const Type& type : c.in) s.numbers.push_back(type.batched ? type.size() : 0);
  s.run = c.out.dtype == DType::float32 ? vjp_kernel<float> : vjp_kernel<double>;
}

void vjp_elements(ElementEmitter& e) {
  const AroundAxis around_axes = around(kVjp, e.out_type().shape, e.attributes());
  const std::int64_t outer = around_axes.outer;
  const std::int64_t n = around_axes.n;
  const std::int64_t inner = around_axes.inner;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      const auto at = [&](std::int64_t r) { return (o * n + r) * inner + i; };
      const std::int32_t given = e.in(0, o * inner + i);
      const std::int32_t best = e.in(2, o * inner + i);
      const std::int32_t is_nan = e.emit("not_equal", {best, best});
      std::vector<std::int32_t> takes;
      std::int32_t count = e.zero();
      for (std::int64_t r = 0; r < n; ++r) {
        const std::int32_t equal = e.emit("equal", {e.in(1, at(r)), best});
        takes.push_back(e.emit("logical_or", {equal, is_nan}));
        count = e.emit("add", {count, equal});
      }
      // Divided by the NaN itself, where the extremum is one.
      const std::int32_t by = e.emit("where", {is_nan, best, count});
      const std::int32_t nothing =
          e.emit("logical_and", {is_nan, e.emit("equal", {given, e.zero()})});
      const std::int32_t share =
          e.emit("where", {nothing, e.zero(), e.emit("divide", {given, by})});
      for (std::int64_t r = 0; r < n; ++r) {
        e.out(at(r), e.emit("where", {takes[static_cast<std::size_t>(r)], share, e.zero()}));
      }
    }
  }
}

template <class F>
std::vector<Op> pair(std::string_view doc, std::string_view arg_doc) {
  Op op;
  op.name = F::name;
  op.doc = doc;
  op.attributes = {"axes", "keepdims"};
  op.simplify = simplify<F>;
  op.infer = [](std::span<const Type> in, const Attributes& attributes) {
    return infer(F::name, in[0], attributes);
  };
  op.reverse = reverse<F>;
  op.lower = [](const LowerContext& c, Instruction& s) {
    set_numbers(F::name, c, s);
    s.run = c.out.dtype == DType::float32 ? kernel<F, float> : kernel<F, double>;
  };
  op.elements = elements<F>;

  Op arg;
  arg.name = F::arg_name;
  arg.doc = arg_doc;
  arg.attributes = op.attributes;
  arg.simplify = [](Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
    return gather_reduced_axes(e, F::arg_name, inputs[0], attributes);
  };
  arg.infer = [](std::span<const Type> in, const Attributes& attributes) {
    return infer(F::arg_name, in[0], attributes);
  };
  arg.reverse = [](Emitter&, const NodeView&, NodeId, std::span<NodeId>) {};
  arg.forward = [](Emitter&, const NodeView&, std::span<const NodeId>) { return kNone; };
  arg.lower = [](const LowerContext& c, Instruction& s) {
    set_numbers(F::arg_name, c, s);
    s.run = c.out.dtype == DType::float32 ? arg_kernel<F, float> : arg_kernel<F, double>;
  };
  return {op, arg};
}

}  // namespace

std::vector<Op> extremum_ops() {
  std::vector<Op> ops = pair<Max>("Largest element over axes.", "Place of the largest element.");
  for (const Op& op : pair<Min>("Smallest element over axes.", "Place of the smallest element.")) {
    ops.push_back(op);
  }
  Op vjp;
  vjp.name = kVjp;
  vjp.doc = "Cotangent of max or min, shared by the elements that are equal to it.";
  vjp.arity = 3;
  vjp.attributes = {"axes"};
  vjp.derived = true;
  vjp.infer = infer_vjp;
  vjp.lower = lower_vjp;
  vjp.elements = vjp_elements;
  vjp.expand = expand;
  ops.push_back(vjp);
  return ops;
}

}  // namespace buropt
