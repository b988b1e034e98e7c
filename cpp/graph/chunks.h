// What the instruction of a fused step holds, and its kernels.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "graph/blocks.h"
#include "graph/single.h"
#include "ops/op.h"

namespace buropt {

/// Elements of a chunk: a few arrays of them fit into the first-level cache, and the calls of the
/// kernels do not show.
inline constexpr std::int64_t kChunk = 512;
/// The last one may be this long, so that it is never shorter than a block.
inline constexpr std::int64_t kLongest = kChunk + std::max(kBlock<float>, kBlock<double>);

/// Results of at least so many bytes are stored past the caches. Of what is twice as large as the
/// second-level cache, reading it right afterwards costs no more than that saves.
inline constexpr std::int64_t kStreamedBytes = std::int64_t{4} << 20;

/// What the instruction of a fused step holds. Parts number the operands anew; a chunk's length
/// plays the part of the number of samples in a tile.
struct Fused {
  struct Operand {
    enum Kind : std::uint8_t { stream, number, scratch } kind;
    std::int32_t buffer;
    std::int64_t offset;  ///< bytes, to the first element
  };
  /// Bytes of a result that parts add to, or that none of them reaches: set to zero before.
  struct Zeroed {
    std::int32_t buffer;
    std::int64_t begin;
    std::int64_t end;
  };
  /// A value of which the last bytes of the chunks so far stay before its place in scratch memory.
  struct Delayed {
    std::int64_t offset;
    std::int64_t bytes;
  };
  /// A result's place in scratch memory where a thread runs the chunk before its share, for what
  /// waits of it.
  struct Repeated {
    std::int32_t operand;
    std::int64_t offset;
  };
  /// What runs over a chunk of at least a block: some parts together, or one.
  struct Segment {
    std::shared_ptr<const BlockProgram> blocks;
    std::size_t part;
  };
  std::vector<Operand> operands;
  std::vector<Instruction> parts;
  std::vector<Segment> segments;
  std::shared_ptr<const SingleProgram> single;  ///< the parts, for one element; may be null
  std::vector<Zeroed> zeroed;
  std::vector<Delayed> delayed;
  std::vector<Repeated> repeated;
  std::vector<Instruction> tails;  ///< run once, behind the last chunk
  std::int32_t streamed = -1;      ///< the operand that is stored past the caches
  std::int64_t size = 0;
  std::int64_t item = 8;
  std::int64_t block = 1;
  std::int64_t slot_bytes = 0;
  /// A part sums over the elements, so where chunks begin is for the shape alone to say.
  bool has_sums = false;
};

/// The kernel of a fused step: its parts, for one chunk after the other.
void run_fused(const Instruction& s, const Frame& frame) noexcept;

/// Parts that end a chain: they add to a number, or to an array (`first`: what they find there is
/// not read).
Kernel sum_part(DType dtype);
Kernel slice_part(DType dtype, bool first);
/// The last elements of a sum of delayed values. numbers: how many each of them has left; the first
/// one has the most.
Kernel tail_part(DType dtype);

}  // namespace buropt
