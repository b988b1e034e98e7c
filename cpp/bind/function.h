// A plain function of arrays, as the bindings call it.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "bind/arrays.h"
#include "exec/engine.h"

namespace buropt {

/// Memory for a few things where they are used, and for many elsewhere.
template <class T>
class Few {
 public:
  explicit Few(std::size_t n) : many_(n > kFew ? std::make_unique<T[]>(n) : nullptr), n_(n) {}
  T* data() { return many_ ? many_.get() : few_.data(); }
  T& operator[](std::size_t i) { return data()[i]; }
  std::span<T> span() { return {data(), n_}; }

 private:
  static constexpr std::size_t kFew = 8;
  std::array<T, kFew> few_{};
  std::unique_ptr<T[]> many_;
  std::size_t n_;
};

/// Every input is a vector of its own, every output an array or a number.
class FunctionProgram {
 public:
  explicit FunctionProgram(std::shared_ptr<Graph> graph);

  DType dtype() const { return dtype_; }
  std::size_t n_inputs() const { return in_shapes_.size(); }
  std::size_t n_outputs() const { return out_shapes_.size(); }
  const Shape& out_shape(std::size_t k) const { return out_shapes_[k]; }

  /// Inputs in the graph's order; outputs: where each is written.
  void evaluate(PyObject* const* arrays, std::span<std::byte* const> outputs) const;

 private:
  const std::byte* read(nb::handle object, std::size_t k, std::vector<nb::object>& holders,
                        double* scalar) const;

  std::shared_ptr<Engine> engine_;
  DType dtype_;
  std::vector<Shape> in_shapes_;
  std::vector<Shape> out_shapes_;
  std::vector<std::string> names_;
  /// What a short program is run with. It keeps the interpreter's lock, so there is one such call
  /// at a time.
  mutable std::array<Batch, 1> batch_;
};

}  // namespace buropt
