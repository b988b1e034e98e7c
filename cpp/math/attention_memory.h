// Attention in two steps, with the weights of the first one kept for the cotangents: for shapes
// that `remembers`.
//
// The memory holds what a register's worth of problems needs as arrays of registers, and then the
// next ones'. The last problems leave lanes empty.
#pragma once

#include "math/attention.h"

namespace buropt {

/// Numbers that the memory takes for a sample, one sample alone included.
template <class T>
std::int64_t attention_memory(const AttentionShape& a) noexcept {
  return ceil_div(a.heads, Pack<T>::size) * Pack<T>::size * a.memory();
}

/// Elements of scratch for any of the steps.
template <class T>
std::int64_t attention_memory_scratch(const AttentionShape& a) noexcept {
  return (4 * a.length * a.width + a.pairs_before(a.length)) * Pack<T>::size;
}

/// memory (samples, attention_memory) of qkv (samples, T, 3 C); qkv_sample is 0 when all samples
/// share it.
template <class T>
void remember_attention(const AttentionShape& a, std::int64_t samples, const T* qkv,
                        std::int64_t qkv_sample, T* memory, T* scratch) noexcept {
  for_each_lanes<T>(a, samples, [&](std::int64_t first, const detail::HeadLanes<T>& lanes) {
    detail::remember_in_lanes(a, qkv, qkv_sample, lanes, memory + first * a.memory(), scratch);
  });
}

/// out (samples, T, C).
template <class T>
void attention_from_memory(const AttentionShape& a, std::int64_t samples, const T* memory, T* out,
                           T* scratch) noexcept {
  for_each_lanes<T>(a, samples, [&](std::int64_t first, const detail::HeadLanes<T>& lanes) {
    detail::attention_from_memory(a, memory + first * a.memory(), lanes, out, scratch);
  });
}

/// out (samples, T, 3 C): the cotangents of qkv from those of the result, ct (samples, T, C).
template <class T>
void attention_vjp_from_memory(const AttentionShape& a, std::int64_t samples, const T* ct,
                               std::int64_t ct_sample, const T* memory, T* out,
                               T* scratch) noexcept {
  for_each_lanes<T>(a, samples, [&](std::int64_t first, const detail::HeadLanes<T>& lanes) {
    const T* const of_lanes = memory + first * a.memory();
    detail::attention_vjp_from_memory(a, ct, ct_sample, of_lanes, lanes, out, scratch);
  });
}

}  // namespace buropt
