#include "ops/strided.h"

#include <algorithm>
#include <cstring>

#include "math/transpose.h"

namespace buropt {
namespace {

// Instruction::numbers of a strided copy: in size per sample, out size per sample, offset, rank,
// then extent and stride of each axis.
constexpr std::size_t kHeader = 4;

/// The view with axes of extent 1 dropped and neighbours merged, so that the inner loop is long.
StridedView merged(const StridedView& view) {
  StridedView result;
  result.offset = view.offset;
  for (int axis = 0; axis < view.extents.rank(); ++axis) {
    const std::int64_t extent = view.extents[axis];
    const std::int64_t stride = view.strides[static_cast<std::size_t>(axis)];
    if (extent == 1) continue;
    const int last = result.extents.rank() - 1;
    if (last >= 0 && result.strides.back() == stride * extent) {
      result.extents[last] *= extent;
      result.strides.back() = stride;
    } else {
      result.extents.push_back(extent);
      result.strides.push_back(stride);
    }
  }
  return result;
}

void set_numbers(const StridedView& view, const LowerContext& c, Instruction& s) {
  append_view(view, c.in[0], c.out, s.numbers);
}

/// Calls f(contiguous place, strided place, n, stride) for every innermost run.
template <class F>
void for_runs(const std::int64_t* numbers, F&& f) {
  const int rank = static_cast<int>(numbers[3]);
  const std::int64_t* axes = numbers + kHeader;
  const std::int64_t inner = rank > 0 ? axes[2 * (rank - 1)] : 1;
  const std::int64_t inner_stride = rank > 0 ? axes[2 * (rank - 1) + 1] : 1;
  std::int64_t runs = 1;
  for (int axis = 0; axis + 1 < rank; ++axis) runs *= axes[2 * axis];
  if (inner == 0) return;
  std::array<std::int64_t, kMaxRank> index{};
  std::int64_t place = numbers[2];
  for (std::int64_t run = 0; run < runs; ++run) {
    f(run * inner, place, inner, inner_stride);
    for (int axis = rank - 2; axis >= 0; --axis) {
      const auto a = static_cast<std::size_t>(axis);
      place += axes[2 * axis + 1];
      if (++index[a] < axes[2 * axis]) break;
      place -= axes[2 * axis] * axes[2 * axis + 1];
      index[a] = 0;
    }
  }
}

/// Calls f(contiguous, strided, n, their steps) for runs that together are all rows: along the
/// samples where there is little of each, and else within each of them.
template <class F>
void for_rows(const std::int64_t* numbers, std::int64_t contiguous, std::int64_t strided,
              std::int64_t rows, F&& f) {
  constexpr std::int64_t kFew = 8;
  if (contiguous > 0 && contiguous <= kFew && rows > contiguous) {
    for_runs(numbers, [&](std::int64_t c, std::int64_t s, std::int64_t n, std::int64_t stride) {
      for (std::int64_t i = 0; i < n; ++i) f(c + i, s + i * stride, rows, contiguous, strided);
    });
    return;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    for_runs(numbers, [&](std::int64_t c, std::int64_t s, std::int64_t n, std::int64_t stride) {
      f(row * contiguous + c, row * strided + s, n, std::int64_t{1}, stride);
    });
  }
}

/// The transposes of matrices: of numbers, [4] and [6] are the extents, [7] the stride between the
/// rows.
template <class T>
void transpose_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* n = s.numbers.data();
  for (std::int64_t row = 0; row < s.rows(frame); ++row) {
    const T* in = buffer_as<const T>(frame, s.in[0]) + row * n[0] + n[2];
    transpose(n[6], n[4], in, n[7], buffer_as<T>(frame, s.out) + row * n[1], n[6]);
  }
}

/// Whether the view is a matrix read by columns: extents (rows, columns), strides (1, row stride).
bool is_transpose(const Instruction& s) {
  return s.numbers[3] == 2 && s.numbers[5] == 1 && s.numbers[7] >= s.numbers[4];
}

/// Every kStep-th element; compilers know what to do with a step that they know.
template <std::int64_t kStep, class T>
void take_every(const T* in, T* out, std::int64_t n) noexcept {
  for (std::int64_t i = 0; i < n; ++i) out[i] = in[i * kStep];
}

template <class T>
void copy_strided(const T* in, std::int64_t in_step, T* out, std::int64_t out_step,
                  std::int64_t n) noexcept {
  if (out_step == 1) {
    if (in_step == 1) return void(std::copy_n(in, n, out));
    if (in_step == 2) return take_every<2>(in, out, n);
    if (in_step == 3) return take_every<3>(in, out, n);
    if (in_step == 4) return take_every<4>(in, out, n);
  }
  for (std::int64_t i = 0; i < n; ++i) out[i * out_step] = in[i * in_step];
}

template <class T>
void gather_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* numbers = s.numbers.data();
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  for_rows(
      numbers, numbers[1], numbers[0], s.rows(frame),
      [&](std::int64_t to, std::int64_t from, std::int64_t n, std::int64_t to_step,
          std::int64_t from_step) { copy_strided(in + from, from_step, out + to, to_step, n); });
}

template <class T>
void scatter_kernel(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t* numbers = s.numbers.data();
  const std::int64_t rows = s.rows(frame);
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  std::fill_n(out, rows * numbers[1], T(0));
  for_rows(numbers, numbers[0], numbers[1], rows,
           [&](std::int64_t from, std::int64_t to, std::int64_t n, std::int64_t from_step,
               std::int64_t to_step) {
             for (std::int64_t i = 0; i < n; ++i) out[to + i * to_step] = in[from + i * from_step];
           });
}

}  // namespace

void append_view(const StridedView& view, const Type& contiguous, const Type& strided,
                 std::vector<std::int64_t>& numbers) {
  const StridedView flat = merged(view);
  numbers.insert(numbers.end(), {contiguous.batched ? contiguous.size() : 0, strided.size(),
                                 flat.offset, flat.extents.rank()});
  for (int axis = 0; axis < flat.extents.rank(); ++axis) {
    numbers.push_back(flat.extents[axis]);
    numbers.push_back(flat.strides[static_cast<std::size_t>(axis)]);
  }
}

std::int64_t view_length(const std::int64_t* numbers) noexcept {
  return static_cast<std::int64_t>(kHeader) + 2 * numbers[3];
}

template <class T>
void add_to_view(const std::int64_t* numbers, const T* in, T* out, std::int64_t rows) noexcept {
  for_rows(numbers, numbers[0], numbers[1], rows,
           [&](std::int64_t from, std::int64_t to, std::int64_t n, std::int64_t from_step,
               std::int64_t to_step) {
             for (std::int64_t i = 0; i < n; ++i) out[to + i * to_step] += in[from + i * from_step];
           });
}

template void add_to_view(const std::int64_t*, const float*, float*, std::int64_t) noexcept;
template void add_to_view(const std::int64_t*, const double*, double*, std::int64_t) noexcept;

std::int64_t StridedView::place(std::int64_t element) const {
  std::int64_t result = offset;
  for (int axis = extents.rank() - 1; axis >= 0; --axis) {
    result += element % extents[axis] * strides[static_cast<std::size_t>(axis)];
    element /= extents[axis];
  }
  return result;
}

void lower_gather(const StridedView& view, const LowerContext& c, Instruction& s) {
  set_numbers(view, c, s);
  if (is_transpose(s))
    s.run = c.out.dtype == DType::float32 ? transpose_kernel<float> : transpose_kernel<double>;
  else
    s.run = c.out.dtype == DType::float32 ? gather_kernel<float> : gather_kernel<double>;
}

void lower_scatter(const StridedView& view, const LowerContext& c, Instruction& s) {
  set_numbers(view, c, s);
  s.run = c.out.dtype == DType::float32 ? scatter_kernel<float> : scatter_kernel<double>;
}

void gather_elements(const StridedView& view, ElementEmitter& e) {
  for (std::int64_t i = 0; i < e.out_type().size(); ++i) e.out(i, e.in(0, view.place(i)));
}

void scatter_elements(const StridedView& view, ElementEmitter& e) {
  for (std::int64_t i = 0; i < e.out_type().size(); ++i) e.out(i, e.zero());
  for (std::int64_t i = 0; i < e.in_type(0).size(); ++i) e.out(view.place(i), e.in(0, i));
}

}  // namespace buropt
