// cumsum, cumprod and the linear recurrence behind the derivatives of products.
//
//   cumsum {"axis", "reverse"}                  y[k] = x[0] + ... + x[k]
//   cumprod {"axis", "reverse", "exclusive"}    y[k] = x[0] * ... * x[k], or up to x[k - 1]
//   linear_recurrence {"axis", "reverse", "shifted"} of (a, c)
//                                               y[k] = c[k] + a[k] y[k - 1], or a[k - 1] y[k - 1]
//
// `reverse` runs from the other end. Nothing is ever divided, so derivatives of products are right
// at any number of zeros and to any order: that of cumprod is a recurrence, and that of a
// recurrence is the other recurrence backwards.
#include <algorithm>

#include "ops/axes.h"
#include "ops/families.h"

namespace buropt {
namespace {

constexpr std::string_view kSum = "cumsum", kProd = "cumprod", kRecurrence = "linear_recurrence";

bool flag(const Attributes& attributes, int list) { return attributes[list].at(0) != 0; }

template <const std::string_view& name>
Type infer(std::span<const Type> in, const Attributes& attributes) {
  Type out = dense(name, in[0]);
  checked_axis(name, out.shape, attributes[0]);
  if (attributes[1].size() != 1 || attributes[2].size() != (&name == &kSum ? 0 : 1)) {
    raise(ErrorKind::value, "buropt.%.*s: a direction is not given", static_cast<int>(name.size()),
          name.data());
  }
  for (const Type& type : in) {
    if (!(dense(name, type).shape == out.shape)) {
      raise(ErrorKind::value, "buropt.%.*s: shapes %s and %s differ", static_cast<int>(name.size()),
            name.data(), out.shape.str().c_str(), type.shape.str().c_str());
    }
    out.batched = out.batched || type.batched;
  }
  return out;
}

/// The elements moved by one place along the axis, and 0 at the end that this leaves free.
NodeId shifted(Emitter& e, NodeId x, std::int64_t axis, bool to_the_front) {
  const Shape shape = e.type(x).shape;
  const auto rank = static_cast<std::size_t>(shape.rank());
  const std::vector<std::int64_t> whole(shape.begin(), shape.end());
  std::vector<std::int64_t> part = whole;
  std::int64_t& extent = part[static_cast<std::size_t>(axis)];
  extent = std::max<std::int64_t>(0, extent - 1);
  const std::vector<std::int64_t> first(rank, 0);
  const std::vector<std::int64_t> steps(rank, 1);
  std::vector<std::int64_t> second(rank, 0);
  second[static_cast<std::size_t>(axis)] = 1;
  const NodeId moved = e.emit("slice", {x}, Attributes(to_the_front ? second : first, part, steps));
  return e.emit("slice_vjp", {moved}, Attributes(to_the_front ? first : second, whole, steps));
}

NodeId recurrence(Emitter& e, NodeId a, NodeId c, std::int64_t axis, bool reverse, bool shifted) {
  return e.emit(kRecurrence, {a, c}, Attributes({axis}, {reverse}, {shifted}));
}

// ---- reverse rules

/// A contribution to elements from which the scan did not go on to a cotangent other than 0 is 0.
NodeId reached(Emitter& e, const NodeView& node, NodeId cotangent, NodeId contribution) {
  if (!node.guarded) return contribution;
  const Attributes back(node.attributes[0], {!flag(node.attributes, 1)});
  const NodeId size = e.emit(kSum, {e.emit("absolute", {cotangent})}, back);
  const NodeId zero = e.constant(0, e.type(cotangent).dtype);
  return without_nan(e, e.emit("equal", {size, zero}), contribution);
}

void reverse_sum(Emitter& e, const NodeView& node, NodeId cotangent, std::span<NodeId> cotangents) {
  cotangents[0] =
      e.emit(kSum, {cotangent}, Attributes(node.attributes[0], {!flag(node.attributes, 1)}));
}

/// The elements before place k multiply what the cotangents behind it collect.
void reverse_prod(Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) {
  const NodeId x = node.inputs[0];
  const std::int64_t axis = node.attributes[0][0];
  const bool reverse = flag(node.attributes, 1);
  const bool exclusive = flag(node.attributes, 2);
  const NodeId before = e.emit(kProd, {x}, Attributes({axis}, {reverse}, {1}));
  NodeId behind = recurrence(e, x, cotangent, axis, !reverse, !exclusive);
  if (exclusive) behind = shifted(e, behind, axis, !reverse);
  cotangents[0] = reached(e, node, cotangent, e.emit("multiply", {before, behind}));
}

void reverse_recurrence(Emitter& e, const NodeView& node, NodeId cotangent,
                        std::span<NodeId> cotangents) {
  const std::int64_t axis = node.attributes[0][0];
  const bool reverse = flag(node.attributes, 1);
  const bool is_shifted = flag(node.attributes, 2);
  const NodeId back = recurrence(e, node.inputs[0], cotangent, axis, !reverse, !is_shifted);
  const NodeId by_a = is_shifted ? e.emit("multiply", {shifted(e, back, axis, !reverse), node.id})
                                 : e.emit("multiply", {back, shifted(e, node.id, axis, reverse)});
  cotangents[0] = reached(e, node, cotangent, by_a);
  cotangents[1] = reached(e, node, cotangent, back);
}

NodeId forward_recurrence(Emitter& e, const NodeView& node, std::span<const NodeId> tangents) {
  const std::int64_t axis = node.attributes[0][0];
  const bool reverse = flag(node.attributes, 1);
  const bool is_shifted = flag(node.attributes, 2);
  NodeId source = tangents[1];
  if (tangents[0] != kNone) {
    const NodeId moved =
        is_shifted ? shifted(e, e.emit("multiply", {tangents[0], node.id}), axis, reverse)
                   : e.emit("multiply", {tangents[0], shifted(e, node.id, axis, reverse)});
    source = source == kNone ? moved : e.emit("add", {source, moved});
  }
  return recurrence(e, node.inputs[0], source, axis, reverse, is_shifted);
}

// ---- kernels. numbers: outer, n, inner, reverse, the other flag, and by operand the elements from
// one sample to the next (0 when unbatched).

/// Calls f(k, previous) for the places along an axis, in the order of the scan; before the first
/// place `previous` is -1.
template <class F>
void for_places(std::int64_t n, bool reverse, F&& f) noexcept {
  for (std::int64_t step = 0; step < n; ++step) {
    const std::int64_t k = reverse ? n - 1 - step : step;
    f(k, step == 0 ? std::int64_t{-1} : reverse ? k + 1 : k - 1);
  }
}

struct Summing {
  template <class T>
  static void row(const T* const* in, T* out, std::int64_t k, std::int64_t previous,
                  std::int64_t inner, bool) noexcept {
    const T* x = in[0] + k * inner;
    T* y = out + k * inner;
    if (previous < 0) {
      std::copy_n(x, inner, y);
    } else {
      const T* before = out + previous * inner;
      for (std::int64_t i = 0; i < inner; ++i) y[i] = before[i] + x[i];
    }
  }
};

struct Multiplying {
  template <class T>
  static void row(const T* const* in, T* out, std::int64_t k, std::int64_t previous,
                  std::int64_t inner, bool exclusive) noexcept {
    T* y = out + k * inner;
    if (previous < 0) {
      if (exclusive)
        std::fill_n(y, inner, T(1));
      else
        std::copy_n(in[0] + k * inner, inner, y);
    } else {
      const T* x = in[0] + (exclusive ? previous : k) * inner;
      const T* before = out + previous * inner;
      for (std::int64_t i = 0; i < inner; ++i) y[i] = before[i] * x[i];
    }
  }
};

struct Recurring {
  template <class T>
  static void row(const T* const* in, T* out, std::int64_t k, std::int64_t previous,
                  std::int64_t inner, bool is_shifted) noexcept {
    const T* c = in[1] + k * inner;
    T* y = out + k * inner;
    if (previous < 0) {
      std::copy_n(c, inner, y);
    } else {
      const T* a = in[0] + (is_shifted ? previous : k) * inner;
      const T* before = out + previous * inner;
      for (std::int64_t i = 0; i < inner; ++i) y[i] = a[i] * before[i] + c[i];
    }
  }
};

template <class F, class T, int arity>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* n = s.numbers.data();
  const std::int64_t part = n[1] * n[2];
  T* out = buffer_as<T>(frame, s.out);
  for (std::int64_t row = 0; row < s.rows(frame); ++row) {
    std::array<const T*, arity> in;
    for (std::size_t k = 0; k < arity; ++k) {
      in[k] = buffer_as<const T>(frame, s.in[k]) + row * n[5 + k];
    }
    for (std::int64_t o = 0; o < n[0]; ++o, out += part) {
      for_places(n[1], n[3] != 0, [&](std::int64_t k, std::int64_t previous) noexcept {
        F::row(in.data(), out, k, previous, n[2], n[4] != 0);
      });
      for (const T*& operand : in) operand += part;
    }
  }
}

template <class F, int arity>
void lower(const LowerContext& c, Instruction& s) {
  const AroundAxis around = around_axis(c.out.shape, static_cast<int>(c.attributes[0][0]));
  const bool other = !c.attributes[2].empty() && flag(c.attributes, 2);
  s.numbers = {around.outer, around.n, around.inner, flag(c.attributes, 1), other};
  for (const Type& type : c.in) s.numbers.push_back(type.batched ? type.size() : 0);
  s.run = c.out.dtype == DType::float32 ? kernel<F, float, arity> : kernel<F, double, arity>;
}

/// Calls f(element, previous element or -1) for every element, in the order of the scans.
template <class F>
void for_elements(const ElementEmitter& e, F&& f) {
  const AroundAxis around = around_axis(e.out_type().shape, static_cast<int>(e.attributes()[0][0]));
  const std::int64_t n = around.n;
  const std::int64_t inner = around.inner;
  for (std::int64_t o = 0; o < around.outer; ++o) {
    for (std::int64_t i = 0; i < inner; ++i) {
      for_places(n, flag(e.attributes(), 1), [&](std::int64_t k, std::int64_t previous) {
        const std::int64_t first = o * n * inner + i;
        f(first + k * inner, previous < 0 ? -1 : first + previous * inner);
      });
    }
  }
}

void sum_elements(ElementEmitter& e) {
  std::int32_t total = e.zero();
  for_elements(e, [&](std::int64_t at, std::int64_t previous) {
    total = previous < 0 ? e.in(0, at) : e.emit("add", {total, e.in(0, at)});
    e.out(at, total);
  });
}

void prod_elements(ElementEmitter& e) {
  const bool exclusive = flag(e.attributes(), 2);
  std::int32_t product = -1;
  for_elements(e, [&](std::int64_t at, std::int64_t previous) {
    if (exclusive && previous < 0) {
      product = e.constant(1);
    } else {
      const std::int32_t factor = e.in(0, exclusive ? previous : at);
      product = previous < 0 ? factor : e.emit("multiply", {product, factor});
    }
    e.out(at, product);
  });
}

void recurrence_elements(ElementEmitter& e) {
  const bool is_shifted = flag(e.attributes(), 2);
  std::int32_t value = e.zero();
  for_elements(e, [&](std::int64_t at, std::int64_t previous) {
    const std::int32_t own = e.in(1, at);
    if (previous < 0) {
      value = own;
    } else {
      const std::int32_t a = e.in(0, is_shifted ? previous : at);
      value = e.emit("add", {e.emit("multiply", {a, value}), own});
    }
    e.out(at, value);
  });
}

}  // namespace

std::vector<Op> scan_ops() {
  Op sum;
  sum.name = kSum;
  sum.doc = "Sums of all elements up to each place along an axis.";
  sum.attributes = {"axis", "reverse"};
  sum.infer = infer<kSum>;
  sum.linearity = Linearity::jointly;
  sum.reverse = reverse_sum;
  sum.batch_sum = [](Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
    return e.emit(kSum, {e.emit("batch_sum", {inputs[0]})}, attributes);
  };
  sum.lower = lower<Summing, 1>;
  sum.elements = sum_elements;

  Op prod;
  prod.name = kProd;
  prod.doc = "Products of all elements up to each place along an axis.";
  prod.attributes = {"axis", "reverse", "exclusive"};
  prod.infer = infer<kProd>;
  prod.reverse = reverse_prod;
  prod.lower = lower<Multiplying, 1>;
  prod.elements = prod_elements;

  Op linear;
  linear.name = kRecurrence;
  linear.doc = "y[k] = c[k] + a[k] * y[k - 1] along an axis.";
  linear.arity = 2;
  linear.attributes = {"axis", "reverse", "shifted"};
  linear.derived = true;
  linear.infer = infer<kRecurrence>;
  linear.reverse = reverse_recurrence;
  linear.forward = forward_recurrence;
  linear.lower = lower<Recurring, 2>;
  linear.elements = recurrence_elements;
  return {sum, prod, linear};
}

}  // namespace buropt
