// What a matrix product's sums go through on their way to memory.
#pragma once

#include <cstdint>

#include "math/lanes.h"

namespace buropt {

/// mask(relu((x + bias) + residual)) of x (m, n), each part only where it is given. Row i of a
/// matrix begins i * (name)_row elements after its pointer.
template <class T>
struct GemmEpilogue {
  /// Not 0: x is init - step * product, each rounded, in place of init + product. The inner index
  /// then has one block.
  T step = 0;
  /// (n,)
  const T* bias = nullptr;
  /// (m, n)
  const T* residual = nullptr;
  std::int64_t residual_row = 0;
  /// max(x, 0); NaN stays.
  bool relu = false;
  /// (m, n), the operand or the value of a relu: the result is multiplied by relu's slope there, 1
  /// above 0, 0 at 0 and below, and NaN for NaN.
  const T* mask = nullptr;
  std::int64_t mask_row = 0;

  bool empty() const noexcept { return step == 0 && !bias && !residual && !relu && !mask; }
};

namespace detail {

/// Where a block of C lies in the whole, and what becomes of its sums.
template <class T>
struct GemmTarget {
  T* c;  // element (row, column)
  std::int64_t ldc;
  const T* init;  // that of element (row, column), or nullptr
  std::int64_t init_row;
  const GemmEpilogue<T>* rest;  // what follows init, or nullptr
  std::int64_t row;
  std::int64_t column;

  BUROPT_INLINE void next_rows(std::int64_t rows) noexcept {
    c += rows * ldc;
    if (init != nullptr) init += rows * init_row;
    row += rows;
  }
  BUROPT_INLINE GemmTarget from_column(std::int64_t j) const noexcept {
    return {c + j, ldc, init == nullptr ? nullptr : init + j, init_row, rest, row, column + j};
  }
};

/// sum = the epilogue of kRows rows of a strip.
template <class T, int kRows, class Strip>
BUROPT_INLINE void finish_block(Lanes<T, Strip::kLanes> (&sum)[kRows][Strip::kPacks],
                                const GemmTarget<T>& to, Strip strip) noexcept {
  constexpr int kLanes = Strip::kLanes;
  using V = Lanes<T, kLanes>;
  // f(i, q, column) for every vector q of every row i.
  const auto each = [&](auto&& f) __attribute__((always_inline)) {
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
#pragma GCC unroll 8
      for (int q = 0; q < Strip::kPacks; ++q) f(i, q, strip.offset(q));
    }
  };
  const auto add = [&](const T* p, std::int64_t row) __attribute__((always_inline)) {
    each([&](int i, int q, std::int64_t j) __attribute__((always_inline)) {
      sum[i][q] += load_lanes<T, kLanes>(p + i * row + j);
    });
  };
  const GemmEpilogue<T>& end = *to.rest;
  if (end.step != 0) {
    each([&](int i, int q, std::int64_t j) __attribute__((always_inline)) {
      const V change = multiply_add(sum[i][q], end.step, V{});  // as rounded_product
      sum[i][q] = load_lanes<T, kLanes>(to.init + i * to.init_row + j) - change;
    });
  } else if (to.init != nullptr) {
    add(to.init, to.init_row);
  }
  if (end.bias != nullptr) add(end.bias + to.column, 0);
  if (end.residual != nullptr) {
    add(end.residual + to.row * end.residual_row + to.column, end.residual_row);
  }
  if (end.relu) {
    each([&](int i, int q, std::int64_t)
             __attribute__((always_inline)) { sum[i][q] = sum[i][q] <= V{} ? V{} : sum[i][q]; });
  }
  if (end.mask != nullptr) {
    const T* mask = end.mask + to.row * end.mask_row + to.column;
    each([&](int i, int q, std::int64_t j) __attribute__((always_inline)) {
      const V y = load_lanes<T, kLanes>(mask + i * end.mask_row + j);
      const V slope = y > V{} ? V{} + T(1) : (y <= V{} ? V{} : y);
      sum[i][q] *= slope;
    });
  }
}

/// Stores the epilogue of kRows rows of a strip. The last vector of a row may overlap another, so
/// all of a row is loaded before any of it is stored.
template <class T, int kRows, class Strip>
BUROPT_INLINE void store_block(Lanes<T, Strip::kLanes> (&sum)[kRows][Strip::kPacks],
                               const GemmTarget<T>& to, Strip strip) noexcept {
  constexpr int kLanes = Strip::kLanes;
  const T* init = to.init;
  if (to.rest != nullptr) {
    finish_block<T, kRows>(sum, to, strip);
    init = nullptr;
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    if (init != nullptr) {
#pragma GCC unroll 8
      for (int q = 0; q < Strip::kPacks; ++q) {
        sum[i][q] += load_lanes<T, kLanes>(init + i * to.init_row + strip.offset(q));
      }
    }
    T* c = to.c + i * to.ldc;
#pragma GCC unroll 8
    for (int q = 0; q < Strip::kPacks; ++q) {
      store_lanes<T, kLanes>(c + strip.offset(q), sum[i][q]);
    }
  }
}

}  // namespace detail

}  // namespace buropt
