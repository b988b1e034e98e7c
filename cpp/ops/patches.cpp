// patches {"kernel"}, {"stride"}, {"padding"}: the windows of an image, one a row, and the
// transpose patches_vjp.
//
// x (C, H, W) -> (H_out * W_out, C * kh * kw). A convolution is a product of this matrix with the
// weights (C_out, C * kh * kw)', so that a tile of images is one tall product. Padding reads as 0.
#include <algorithm>

#include "ops/families.h"

namespace buropt {
namespace {

struct Windows {
  std::int64_t channels, height, width;  // of the image
  std::int64_t rows, columns;            // of the kernel
  std::int64_t down, right;              // stride
  std::int64_t top, left;                // padding

  std::int64_t out_height() const noexcept { return (height + 2 * top - rows) / down + 1; }
  std::int64_t out_width() const noexcept { return (width + 2 * left - columns) / right + 1; }
  std::int64_t image() const noexcept { return channels * height * width; }
  std::int64_t number() const noexcept { return out_height() * out_width(); }
  std::int64_t size() const noexcept { return channels * rows * columns; }
};

Windows windows_of(const Shape& image, std::span<const std::int64_t> kernel,
                   std::span<const std::int64_t> stride, std::span<const std::int64_t> padding) {
  bool valid = image.rank() == 3 && kernel.size() == 2 && stride.size() == 2 && padding.size() == 2;
  for (std::size_t axis = 0; valid && axis < 2; ++axis) {
    valid = kernel[axis] >= 1 && stride[axis] >= 1 && padding[axis] >= 0 &&
            kernel[axis] <= image[static_cast<int>(axis) + 1] + 2 * padding[axis];
  }
  if (!valid) {
    raise(ErrorKind::value,
          "buropt.patches: a kernel of shape %s with stride %s and padding %s does not fit into an "
          "image of shape %s",
          Shape(kernel).str().c_str(), Shape(stride).str().c_str(), Shape(padding).str().c_str(),
          image.str().c_str());
  }
  return {image[0],  image[1],  image[2],   kernel[0], kernel[1],
          stride[0], stride[1], padding[0], padding[1]};
}

/// Calls f(window element, image element) for the run of columns that each row of each window has
/// inside of the image, with the length of the run.
template <class F>
void for_each_run(const Windows& w, F&& f) noexcept {
  std::int64_t element = 0;
  for (std::int64_t y = 0; y < w.out_height(); ++y) {
    for (std::int64_t x = 0; x < w.out_width(); ++x) {
      const std::int64_t left = x * w.right - w.left;
      const std::int64_t begin = std::max<std::int64_t>(0, -left);
      const std::int64_t end = std::min(w.columns, w.width - left);
      for (std::int64_t channel = 0; channel < w.channels; ++channel) {
        for (std::int64_t r = 0; r < w.rows; ++r, element += w.columns) {
          const std::int64_t row = y * w.down - w.top + r;
          if (row < 0 || row >= w.height || begin >= end) continue;
          f(element + begin, (channel * w.height + row) * w.width + left + begin, end - begin);
        }
      }
    }
  }
}

/// numbers: the nine of Windows in order.
Windows windows_of(const Instruction& s) noexcept {
  const std::int64_t* n = s.numbers.data();
  return {n[0], n[1], n[2], n[3], n[4], n[5], n[6], n[7], n[8]};
}

void set_numbers(const Windows& w, Instruction& s) {
  s.numbers = {w.channels, w.height, w.width, w.rows, w.columns, w.down, w.right, w.top, w.left};
}

template <class T>
void kernel(const Instruction& s, const Frame& frame) noexcept {
  const Windows w = windows_of(s);
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  std::fill_n(out, s.rows(frame) * w.number() * w.size(), T(0));
  for (std::int64_t sample = 0; sample < s.rows(frame); ++sample) {
    for_each_run(w, [&](std::int64_t to, std::int64_t from, std::int64_t length) {
      std::copy_n(in + from, length, out + to);
    });
    in += w.image();
    out += w.number() * w.size();
  }
}

/// Overlapping windows add up, in the order of the windows.
template <class T>
void vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  const Windows w = windows_of(s);
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  std::fill_n(out, s.rows(frame) * w.image(), T(0));
  for (std::int64_t sample = 0; sample < s.rows(frame); ++sample) {
    for_each_run(w, [&](std::int64_t from, std::int64_t to, std::int64_t length) {
      for (std::int64_t i = 0; i < length; ++i) out[to + i] += in[from + i];
    });
    in += w.number() * w.size();
    out += w.image();
  }
}

Op patches_op() {
  Op op;
  op.name = "patches";
  op.doc = "The windows of an image (C, H, W), one a row.";
  op.attributes = {"kernel", "stride", "padding"};
  op.linearity = Linearity::jointly;
  op.infer = [](std::span<const Type> in, const Attributes& attributes) {
    const Windows w = windows_of(in[0].shape, attributes[0], attributes[1], attributes[2]);
    Type out = in[0];
    out.shape = Shape{w.number(), w.size()};
    return out;
  };
  // The transpose is told the image's shape in front of the kernel's, and stride and padding in
  // one.
  op.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) {
    const Shape image = e.type(node.inputs[0]).shape;
    std::vector<std::int64_t> steps = node.attributes[1];
    steps.insert(steps.end(), node.attributes[2].begin(), node.attributes[2].end());
    cotangents[0] = e.emit("patches_vjp", {cotangent},
                           Attributes({image.begin(), image.end()}, node.attributes[0], steps));
  };
  op.lower = [](const LowerContext& c, Instruction& s) {
    set_numbers(windows_of(c.in[0].shape, c.attributes[0], c.attributes[1], c.attributes[2]), s);
    s.run = c.out.dtype == DType::float32 ? kernel<float> : kernel<double>;
  };
  return op;
}

Windows windows_of(const Attributes& attributes) {
  const std::span<const std::int64_t> steps = attributes[2];
  const std::size_t half = std::min<std::size_t>(2, steps.size());
  return windows_of(Shape(attributes[0]), attributes[1], steps.first(half), steps.subspan(half));
}

Op patches_vjp_op() {
  Op op;
  op.name = "patches_vjp";
  op.doc = "An image of the given shape with the windows added into zeros.";
  op.attributes = {"shape", "kernel", "stride_and_padding"};
  op.derived = true;
  op.linearity = Linearity::jointly;
  op.infer = [](std::span<const Type> in, const Attributes& attributes) {
    const Windows w = windows_of(attributes);
    Type out = in[0];
    if (!(out.shape == Shape{w.number(), w.size()})) {
      raise(ErrorKind::value, "buropt.patches_vjp: the windows have shape %s, not %s",
            out.shape.str().c_str(), Shape{w.number(), w.size()}.str().c_str());
    }
    out.shape = Shape(attributes[0]);
    return out;
  };
  op.reverse = [](Emitter& e, const NodeView& node, NodeId cotangent,
                  std::span<NodeId> cotangents) {
    const auto& steps = node.attributes[2];
    cotangents[0] =
        e.emit("patches", {cotangent},
               Attributes(node.attributes[1], {steps[0], steps[1]}, {steps[2], steps[3]}));
  };
  op.lower = [](const LowerContext& c, Instruction& s) {
    set_numbers(windows_of(c.attributes), s);
    s.run = c.out.dtype == DType::float32 ? vjp_kernel<float> : vjp_kernel<double>;
  };
  return op;
}

}  // namespace

std::vector<Op> patches_ops() { return {patches_op(), patches_vjp_op()}; }

}  // namespace buropt
