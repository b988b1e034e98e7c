// The words of the graph that primitives speak: node ids, types, static attributes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/shape.h"

namespace buropt {

using NodeId = std::int32_t;
using OpId = std::int32_t;

/// What is known of a value before anything runs. `shape` is the shape for one sample; a batched
/// value is stored as [tile][shape], row-major. A csr value is a batched sparse row of shape (d,).
struct Type {
  DType dtype = DType::float64;
  Shape shape;
  bool batched = false;
  bool csr = false;

  std::int64_t size() const noexcept { return shape.size(); }
  friend bool operator==(const Type&, const Type&) = default;
};

/// Static attributes: up to three lists of integers, named by the primitive (Op::attributes).
struct Attributes {
  static constexpr int kLists = 3;
  std::array<std::vector<std::int64_t>, kLists> lists;

  Attributes() = default;
  explicit Attributes(std::vector<std::int64_t> a, std::vector<std::int64_t> b = {},
                      std::vector<std::int64_t> c = {})
      : lists{std::move(a), std::move(b), std::move(c)} {}
  const std::vector<std::int64_t>& operator[](int i) const noexcept {
    return lists[static_cast<std::size_t>(i)];
  }
  friend bool operator==(const Attributes&, const Attributes&) = default;
};

}  // namespace buropt
