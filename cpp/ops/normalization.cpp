// layer_norm {"eps"} and rms_norm {"eps"} over the last axis, without scale and shift.
//
//   layer_norm  y = (x - mean(x)) / sqrt(var(x) + eps)
//   rms_norm    y = x / sqrt(mean(x^2) + eps)
//
// eps is a number: the bits of a double. Cotangents are computed from x again: a row costs little
// while it lies in registers, and neither its mean nor its scale has to be kept.
#include <bit>

#include "ops/families.h"
#include "ops/rows.h"

namespace buropt {
namespace {

template <class T>
T epsilon(const Instruction& s) noexcept {
  return static_cast<T>(std::bit_cast<double>(s.numbers.back()));
}

/// Of the rows of a group: mean (0 if not centred) and 1 / sqrt(mean((x - mean)^2) + eps).
template <class T>
struct Moments {
  RowValues<T> mean;
  RowValues<T> scale;
};

template <bool centred, class T>
BUROPT_INLINE Moments<T> moments(const OperandRows<T>& x, std::int64_t first, int count,
                                 std::int64_t n, T eps) noexcept {
  const T per_column = T(1) / static_cast<T>(n);
  RowGroup<T> group(T(0));
  Pack<T> mean(T(0));
  if constexpr (centred) {
    for (int r = 0; r < count; ++r) {
      const T* row = x[first + r];
      Pack<T> sum(T(0));
      for_each_columns<T>(n, [&](auto at) { sum += at.load(row); });
      group[r] = sum;
    }
    mean = group.folded(Plus()) * per_column;
  }
  const RowValues<T> mean_of(mean);
  for (int r = 0; r < count; ++r) {
    const T* row = x[first + r];
    Pack<T> sum(T(0));
    for_each_columns<T>(n, [&](auto at) {
      const Pack<T> d = at.within(at.load(row) - mean_of[r]);
      sum = fma(d, d, sum);
    });
    group[r] = sum;
  }
  const Pack<T> variance = group.folded(Plus()) * per_column;
  return {mean_of, RowValues<T>(T(1) / sqrt(variance + eps))};
}

template <bool centred, class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> x(s, frame, 0, n);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    const Moments<T> of = moments<centred>(x, first, count, n, epsilon<T>(s));
    for (int r = 0; r < count; ++r) {
      const T* row = x[first + r];
      T* to = out + (first + r) * n;
      const T m = of.mean[r];
      const T factor = of.scale[r];
      for_each_columns<T>(n, [&](auto at) { at.store(to, (at.load(row) - m) * factor); });
    }
  });
}

/// scale (ct - mean(ct) - y mean(ct y)), the second term only if centred.
template <bool centred, class T>
void vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t n = s.numbers[1];
  const OperandRows<T> cotangents(s, frame, 0, n);
  const OperandRows<T> x(s, frame, 1, n);
  const T per_column = T(1) / static_cast<T>(n);
  T* out = buffer_as<T>(frame, s.out);
  for_each_group<T>(s, frame, [&](std::int64_t first, int count) {
    const Moments<T> of = moments<centred>(x, first, count, n, epsilon<T>(s));
    RowGroup<T> plain(T(0));
    RowGroup<T> weighted(T(0));
    for (int r = 0; r < count; ++r) {
      const T* ct = cotangents[first + r];
      const T* row = x[first + r];
      const T m = of.mean[r];
      Pack<T> sum(T(0));
      Pack<T> product(T(0));
      for_each_columns<T>(n, [&](auto at) {
        const Pack<T> c = at.load(ct);
        if constexpr (centred) sum += c;
        product = fma(c, at.within(at.load(row) - m), product);
      });
      plain[r] = sum;
      weighted[r] = product;
    }
    const Pack<T> factors = Pack<T>::load(of.scale.values);
    const RowValues<T> mean_ct(plain.folded(Plus()) * per_column);
    const RowValues<T> slope(weighted.folded(Plus()) * per_column * factors * factors);
    for (int r = 0; r < count; ++r) {
      const T* ct = cotangents[first + r];
      const T* row = x[first + r];
      T* to = out + (first + r) * n;
      const T m = of.mean[r];
      const T factor = of.scale[r];
      for_each_columns<T>(n, [&](auto at) {
        const Pack<T> d = at.load(row) - m;
        at.store(to, (at.load(ct) - mean_ct[r] - d * slope[r]) * factor);
      });
    }
  });
}

template <bool centred>
constexpr std::string_view kName = centred ? "layer_norm" : "rms_norm";
template <bool centred>
constexpr std::string_view kVjpName = centred ? "layer_norm_vjp" : "rms_norm_vjp";

void add_epsilon(const Attributes& attributes, Instruction& s) {
  s.numbers.push_back(attributes[0].at(0));
}

template <bool centred>
NodeId expand_vjp(Emitter& e, std::span<const NodeId> inputs, const Attributes& attributes) {
  const Symbol ct(e, inputs[0]);
  const Symbol x(e, inputs[1]);
  const Symbol n(last_extent(x));
  const Symbol eps(std::bit_cast<double>(attributes[0].at(0)));
  const Symbol d = centred ? x - sum_last(x) / n : x;
  const Symbol scale = Symbol(1) / sqrt(sum_last(d * d) / n + eps);
  const Symbol y = d * scale;
  const Symbol pulled = centred ? ct - sum_last(ct) / n : ct;
  return (scale * (pulled - y * (sum_last(ct * y) / n))).node();
}

template <bool centred>
std::vector<Op> ops(std::string_view doc) {
  Op op;
  op.name = kName<centred>;
  op.doc = doc;
  op.attributes = {"eps"};
  op.infer = [](std::span<const Type> in, const Attributes&) {
    return infer_rows(kName<centred>, in);
  };
  op.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) {
    const Attributes attributes = node.attributes;
    const NodeId pulled = e.emit(kVjpName<centred>, {cotangent, node.inputs[0]}, attributes);
    cotangents[0] = without_dead_rows(e, node, cotangent, pulled);
  };
  // The Jacobian is symmetric.
  op.forward = [](Emitter& e, const NodeView& node, std::span<const NodeId> tangents) {
    const Attributes attributes = node.attributes;
    return e.emit(kVjpName<centred>, {tangents[0], node.inputs[0]}, attributes);
  };
  op.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = row_numbers(c.in, c.out.shape);
    add_epsilon(c.attributes, s);
    s.run = c.out.dtype == DType::float32 ? kernel<centred, float> : kernel<centred, double>;
  };

  Op vjp;
  vjp.name = kVjpName<centred>;
  vjp.doc = "Cotangent through the normalization, from its operand.";
  vjp.arity = 2;
  vjp.attributes = {"eps"};
  vjp.derived = true;
  vjp.infer = [](std::span<const Type> in, const Attributes&) {
    return infer_rows(kVjpName<centred>, in);
  };
  vjp.expand = expand_vjp<centred>;
  vjp.lower = [](const LowerContext& c, Instruction& s) {
    s.numbers = row_numbers(c.in, c.out.shape);
    add_epsilon(c.attributes, s);
    s.run =
        c.out.dtype == DType::float32 ? vjp_kernel<centred, float> : vjp_kernel<centred, double>;
  };
  return {op, vjp};
}

}  // namespace

std::vector<Op> normalization_ops() {
  std::vector<Op> all = ops<true>("(x - mean) / sqrt(variance + eps) over the last axis.");
  for (const Op& op : ops<false>("x / sqrt(mean(x^2) + eps) over the last axis.")) {
    all.push_back(op);
  }
  return all;
}

}  // namespace buropt
