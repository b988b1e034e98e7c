// Number types of a graph. Masks are 0/1 in the graph's own dtype.
#pragma once

#include <cstdint>
#include <string_view>

namespace buropt {

enum class DType : std::uint8_t { float32, float64 };

constexpr std::int64_t size_of(DType dtype) { return dtype == DType::float32 ? 4 : 8; }

constexpr std::string_view name_of(DType dtype) {
  return dtype == DType::float32 ? "float32" : "float64";
}

template <class T>
inline constexpr DType kDTypeOf = DType::float64;
template <>
inline constexpr DType kDTypeOf<float> = DType::float32;

/// Calls f with a value of the C++ type that dtype names: dispatch(dtype, [&](auto zero) {...}).
template <class F>
decltype(auto) dispatch(DType dtype, F&& f) {
  return dtype == DType::float32 ? f(float{}) : f(double{});
}

}  // namespace buropt
