// Rows of A times rows of B: the form of gemm for long rows that both lie contiguous in memory.
#pragma once

#include "math/gemm.h"

namespace buropt {

/// Computes C where uses_dots(g). Nothing is copied, so of few rows of A, B is read just once.
template <class T>
void gemm_by_dots(const Gemm<T>& g) noexcept;

extern template void gemm_by_dots<float>(const Gemm<float>&) noexcept;
extern template void gemm_by_dots<double>(const Gemm<double>&) noexcept;

}  // namespace buropt
