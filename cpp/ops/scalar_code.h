// A list of scalar instructions that jump from one to the next.
#pragma once

#include <algorithm>
#include <span>
#include <type_traits>
#include <vector>

#include "ops/op.h"

namespace buropt {

/// The primitive's instruction, or null.
template <class T>
typename ScalarInstruction<T>::Handler scalar_handler_of(const Op& record) {
  if constexpr (std::is_same_v<T, float>)
    return record.scalar.f32;
  else
    return record.scalar.f64;
}

template <class T>
class ScalarCode {
 public:
  std::size_t size() const noexcept { return code_.size() - 1; }

  /// Of a primitive that has such an instruction.
  void add(const Op& record, std::int32_t out, std::span<const std::int32_t> in,
           std::int64_t number) {
    ScalarInstruction<T> s{scalar_handler_of<T>(record), out, {}, number};
    std::copy(in.begin(), in.end(), s.in.begin());
    code_.insert(code_.end() - 1, s);
  }

  void run(T* registers) const noexcept {
#ifdef BUROPT_SCALAR_LOOP
    for (const ScalarInstruction<T>& s : code_) s.run(registers, &s);
#else
    code_.front().run(registers, code_.data());
#endif
  }

 private:
  static void stop(T*, const ScalarInstruction<T>*) {}

  std::vector<ScalarInstruction<T>> code_{{stop, 0, {}, 0}};  ///< ends with one that returns
};

}  // namespace buropt
