// Shape: up to kMaxRank extents, stored inline, so that a type costs no allocation.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/error.h"

namespace buropt {

inline constexpr int kMaxRank = 8;

class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> extents)
      : Shape(std::span<const std::int64_t>(extents.begin(), extents.size())) {}
  explicit Shape(std::span<const std::int64_t> extents) {
    for (const std::int64_t extent : extents) push_back(extent);
  }

  int rank() const noexcept { return rank_; }
  std::int64_t operator[](int axis) const noexcept {
    return extents_[static_cast<std::size_t>(axis)];
  }
  std::int64_t& operator[](int axis) noexcept { return extents_[static_cast<std::size_t>(axis)]; }
  const std::int64_t* begin() const noexcept { return extents_.data(); }
  const std::int64_t* end() const noexcept { return extents_.data() + rank_; }

  void push_back(std::int64_t extent) {
    if (rank_ == kMaxRank) {
      raise(ErrorKind::value, "buropt: arrays have at most %d axes", kMaxRank);
    }
    extents_[static_cast<std::size_t>(rank_++)] = extent;
  }

  /// Whether the number of elements stays below 2^53, far from any overflow of sizes in bytes.
  bool is_sane() const noexcept {
    std::int64_t result = 1;
    for (int axis = 0; axis < rank_; ++axis) {
      if ((*this)[axis] < 0 || __builtin_mul_overflow(result, (*this)[axis], &result)) return false;
      if (result > (std::int64_t{1} << 53)) return false;
    }
    return true;
  }

  /// Number of elements.
  std::int64_t size() const noexcept { return product(0, rank_); }

  /// Product of the extents of axes [from, to).
  std::int64_t product(int from, int to) const noexcept {
    std::int64_t result = 1;
    for (int axis = from; axis < to; ++axis) result *= (*this)[axis];
    return result;
  }

  /// Row-major strides, in elements.
  std::array<std::int64_t, kMaxRank> strides() const noexcept {
    std::array<std::int64_t, kMaxRank> result{};
    std::int64_t stride = 1;
    for (int axis = rank_ - 1; axis >= 0; --axis) {
      result[static_cast<std::size_t>(axis)] = stride;
      stride *= (*this)[axis];
    }
    return result;
  }

  /// As NumPy prints it: (), (3,), (2, 3).
  std::string str() const {
    std::string text = "(";
    for (int axis = 0; axis < rank_; ++axis) {
      if (axis > 0) text += ", ";
      text += std::to_string((*this)[axis]);
    }
    return text + (rank_ == 1 ? ",)" : ")");
  }

  friend bool operator==(const Shape& a, const Shape& b) noexcept {
    if (a.rank_ != b.rank_) return false;
    for (int axis = 0; axis < a.rank_; ++axis) {
      if (a[axis] != b[axis]) return false;
    }
    return true;
  }

 private:
  std::array<std::int64_t, kMaxRank> extents_{};
  int rank_ = 0;
};

}  // namespace buropt
