// The kernels of a fused step.
#include "graph/chunks.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "base/buffer.h"
#include "base/simd.h"
#include "base/stream.h"
#include "math/lanes.h"
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

/// One thread's walk through the elements.
class Walk {
 public:
  Walk(const Fused& f, const Frame& frame) : f_(f), frame_(frame) {}

  /// Begins the results, where no part does.
  void zero() const {
    for (const Fused::Zeroed& zeroed : f_.zeroed) {
      std::memset(frame_.buffers[zeroed.buffer] + zeroed.begin, 0, at(zeroed.end - zeroed.begin));
    }
  }

  void run(std::int64_t begin, std::int64_t end) const {
    for (const Fused::Delayed& delayed : f_.delayed) {
      std::memset(scratch_ + delayed.offset - delayed.bytes, 0, at(delayed.bytes));
    }
    if (begin > 0 && !f_.delayed.empty()) {
      go_to(begin - kChunk);
      for (const Fused::Repeated& repeated : f_.repeated) {
        local_[repeated.operand] = scratch_ + repeated.offset;
      }
      run_chunk(kChunk);
    }
    go_to(begin);
    const std::int64_t first = first_chunk(f_, local_, end - begin);
    for (std::int64_t i = begin, n = 0; i < end; i += n) {
      const std::int64_t left = end - i;
      n = i == begin ? first : kChunk;
      if (left < n + f_.block) n = left;
      run_chunk(n);
    }
    if (f_.streamed >= 0) finish_streams();
  }

  /// Behind the last element.
  void finish() const {
    for (const Instruction& tail : f_.tails) tail.run(tail, {local_, 0, nullptr});
  }

 private:
  void go_to(std::int64_t element) const {
    for (std::size_t k = 0; k < f_.operands.size(); ++k) {
      const Fused::Operand& operand = f_.operands[k];
      const bool is_scratch = operand.kind == Fused::Operand::scratch;
      local_[k] = (is_scratch ? scratch_ : frame_.buffers[operand.buffer]) + operand.offset;
      if (operand.kind == Fused::Operand::stream) local_[k] += element * f_.item;
    }
  }

  /// Of n elements; goes on to what follows them.
  void run_chunk(std::int64_t n) const {
    const Frame chunk{local_, n, nullptr};
    if (n < f_.block) {
      for (const Instruction& part : f_.parts) part.run(part, chunk);
    } else {
      for (const Fused::Segment& segment : f_.segments) {
        const Instruction& part = f_.parts[segment.part];
        if (segment.blocks)
          segment.blocks->run(local_, n, scratch_ + f_.slot_bytes);
        else
          part.run(part, chunk);
      }
    }
    for (std::size_t k = 0; k < f_.operands.size(); ++k) {
      if (f_.operands[k].kind == Fused::Operand::stream) local_[k] += n * f_.item;
    }
    for (const Fused::Delayed& delayed : f_.delayed) {
      std::byte* before = scratch_ + delayed.offset - delayed.bytes;
      std::memmove(before, before + n * f_.item, at(delayed.bytes));
    }
  }

  const Fused& f_;
  const Frame& frame_;
  /// Where each operand's chunk begins.
  std::byte** local_ = reinterpret_cast<std::byte**>(frame_.scratch);
  std::byte* scratch_ = frame_.scratch + round_up(f_.operands.size() * sizeof(std::byte*));
};

}  // namespace

void run_fused(const Instruction& s, const Frame& frame) noexcept {
  const std::int64_t size = s.batched ? s.fused->size * frame.rows : s.fused->size;
  if (size == 1 && s.fused->single != nullptr) return s.fused->single->run(frame);
  std::int64_t begin = 0;
  std::int64_t end = size;
  if (frame.parts > 1) {
    const std::int64_t chunks = ceil_div(size, kChunk);
    begin = std::min(size, part_begin(chunks, frame.parts, frame.part) * kChunk);
    end = std::min(size, part_begin(chunks, frame.parts, frame.part + 1) * kChunk);
  }
  if (begin == end) return;
  const Walk walk(*s.fused, frame);
  if (begin == 0) walk.zero();
  walk.run(begin, end);
  if (end == size) walk.finish();
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
