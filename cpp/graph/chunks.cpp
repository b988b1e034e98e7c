// The kernels of a fused step.
#include "graph/chunks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/buffer.h"
#include "base/simd.h"
#include "base/stream.h"
#include "math/reduce.h"

namespace buropt {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

template <class T>
void sum_kernel(const Instruction& s, const Frame& frame) noexcept {
  *buffer_as<T>(frame, s.out) += sum(buffer_as<const T>(frame, s.in[0]), frame.rows);
}

template <class T, bool kFirst>
void slice_kernel(const Instruction& s, const Frame& frame) noexcept {
  const T* in = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  constexpr int lanes = Pack<T>::size;
  std::int64_t i = 0;
  // In packs, because as a loop the compiler calls memcpy, which is slow between arrays that lie
  // a multiple of a page and a few bytes apart.
  for (; i + lanes <= frame.rows; i += lanes) {
    const Pack<T> x = Pack<T>::load(in + i);
    (kFirst ? x : Pack<T>::load(out + i) + x).store(out + i);
  }
  for (; i < frame.rows; ++i) out[i] = kFirst ? in[i] : out[i] + in[i];
}

template <class T>
void tail_kernel(const Instruction& s, const Frame& frame) noexcept {
  T* out = buffer_as<T>(frame, s.out);
  for (std::int64_t i = 0; i < s.numbers[0]; ++i) {
    T sum = buffer_as<const T>(frame, s.in[0])[i];
    for (std::size_t k = 1; k < s.in.size(); ++k) {
      if (i < s.numbers[k]) sum += buffer_as<const T>(frame, s.in[k])[i];
    }
    out[i] = sum;
  }
}

/// The length of the first chunk, after which most operands begin with a register's worth of
/// memory: what lies across two cache lines takes twice as long, and cannot go past the caches.
/// local: where operands begin.
std::int64_t first_chunk(const Fused& f, std::byte* const* local, std::int64_t size) {
  constexpr std::int64_t kWorthIt = 4 * kChunk;
  constexpr int kAll = 1 << 16;  // more than there are operands
  if (f.has_sums || size < kWorthIt) return kChunk;
  std::array<int, BUROPT_VECTOR_BYTES> votes{};  // by bytes behind the boundary
  for (std::size_t k = 0; k < f.operands.size(); ++k) {
    if (f.operands[k].kind != Fused::Operand::stream) continue;
    const int weight = static_cast<std::int32_t>(k) == f.streamed ? kAll : 1;
    votes[reinterpret_cast<std::uintptr_t>(local[k]) % BUROPT_VECTOR_BYTES] += weight;
  }
  return kChunk - (std::max_element(votes.begin(), votes.end()) - votes.begin()) / f.item;
}

}  // namespace

void run_fused(const Instruction& s, const Frame& frame) noexcept {
  const Fused& f = *s.fused;
  std::byte** local = reinterpret_cast<std::byte**>(frame.scratch);
  std::byte* scratch = frame.scratch + round_up(f.operands.size() * sizeof(std::byte*));
  const auto address = [&](const Fused::Operand& operand) {
    return operand.kind == Fused::Operand::scratch ? scratch + operand.offset
                                                   : frame.buffers[operand.buffer] + operand.offset;
  };
  for (std::size_t k = 0; k < f.operands.size(); ++k) local[k] = address(f.operands[k]);
  for (const Fused::Zeroed& zeroed : f.zeroed) {
    std::memset(frame.buffers[zeroed.buffer] + zeroed.begin, 0, at(zeroed.end - zeroed.begin));
  }
  for (const Fused::Delayed& delayed : f.delayed) {
    std::memset(scratch + delayed.offset - delayed.bytes, 0, at(delayed.bytes));
  }
  std::byte* block_scratch = scratch + f.slot_bytes;
  const auto advance = [&](std::int64_t n) {
    for (std::size_t k = 0; k < f.operands.size(); ++k) {
      if (f.operands[k].kind == Fused::Operand::stream) local[k] += n * f.item;
    }
  };
  const std::int64_t size = s.batched ? f.size * frame.rows : f.size;
  const std::int64_t first = first_chunk(f, local, size);
  for (std::int64_t begin = 0, n = 0; begin < size; begin += n) {
    const std::int64_t left = size - begin;
    n = begin == 0 ? first : kChunk;
    if (left < n + f.block) n = left;
    const Frame chunk{local, n, nullptr};
    if (n < f.block) {
      for (const Instruction& part : f.parts) part.run(part, chunk);
    } else {
      for (const Fused::Segment& segment : f.segments) {
        const Instruction& part = f.parts[segment.part];
        if (segment.blocks)
          segment.blocks->run(local, n, block_scratch);
        else
          part.run(part, chunk);
      }
    }
    advance(n);
    for (const Fused::Delayed& delayed : f.delayed) {
      std::byte* before = scratch + delayed.offset - delayed.bytes;
      std::memmove(before, before + n * f.item, at(delayed.bytes));
    }
  }
  for (const Instruction& tail : f.tails) tail.run(tail, {local, 0, nullptr});
  if (f.streamed >= 0) finish_streams();
}

Kernel sum_part(DType dtype) {
  return dtype == DType::float32 ? sum_kernel<float> : sum_kernel<double>;
}

Kernel tail_part(DType dtype) {
  return dtype == DType::float32 ? tail_kernel<float> : tail_kernel<double>;
}

Kernel slice_part(DType dtype, bool first) {
  if (dtype == DType::float32)
    return first ? slice_kernel<float, true> : slice_kernel<float, false>;
  return first ? slice_kernel<double, true> : slice_kernel<double, false>;
}

}  // namespace buropt
