// Counter-based randomness: Philox4x32-10 of Salmon, Moraes, Dror and Shaw, "Parallel random
// numbers: as easy as 1, 2, 3", SC 2011.
//
// A random word is a pure function of (seed, round, purpose, worker, position). Nothing about the
// randomness of a run has to be saved, any worker's draw can be repeated by anyone who knows the
// key, and no draw depends on the order or the thread in which others were made.
//
// How the 64-bit key and the 128-bit counter are filled:
//
//   key       seed
//   counter   [0] stage (high 2 bits) and block (low 30 bits): each block gives four words
//             [1] worker; kServer for draws that belong to no worker
//             [2] low half of the round
//             [3] purpose (high 16 bits) and the rest of the round (low 16 bits)
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/simd.h"

namespace buropt {

using PhiloxCounter = std::array<std::uint32_t, 4>;
using PhiloxKey = std::array<std::uint32_t, 2>;

/// One block: four random words for a counter and a key.
constexpr PhiloxCounter philox4x32(PhiloxCounter counter, PhiloxKey key) noexcept {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(second >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(second),
               static_cast<std::uint32_t>(first >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(first)};
    key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
  }
  return counter;
}

/// Names one random draw of a run.
struct RandomKey {
  static constexpr std::uint64_t kMaxRound = (std::uint64_t{1} << 48) - 1;
  static constexpr std::uint32_t kMaxPurpose = (1u << 16) - 1;

  std::uint64_t seed;
  std::uint64_t round;    // at most kMaxRound
  std::uint32_t purpose;  // at most kMaxPurpose
};

/// The "worker" of draws that belong to no worker; a worker's number is below it.
inline constexpr std::uint32_t kServer = 0xFFFFFFFF;

/// The words of one key and worker, in order. 2^32 words a stage, as many as a vector has entries.
class RandomStream {
 public:
  static constexpr std::uint32_t kStages = 4;  // independent streams of one key and worker

  RandomStream(const RandomKey& key, std::uint32_t worker, std::uint32_t stage = 0) noexcept
      : key_{static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32)},
        counter_{stage << 30, worker, static_cast<std::uint32_t>(key.round),
                 static_cast<std::uint32_t>(key.round >> 32) | key.purpose << 16} {}

  std::uint32_t next32() noexcept {
    if (position_ == words_.size()) refill();
    return words_[position_++];
  }

  std::uint64_t next64() noexcept {
    const std::uint64_t low = next32();
    return low | std::uint64_t{next32()} << 32;
  }

  /// The next 4 n words of a stream from which nothing was taken but by `fill`; for many words.
  void fill(std::uint32_t* words, std::size_t n) noexcept {
    for (; n >= kLanes; n -= kLanes, words += 4 * kLanes) blocks<kLanes>(words);
    for (; n > 0; --n, words += 4) blocks<1>(words);
  }

  /// Uniform on the multiples of 2^-53 in [0, 1).
  double uniform() noexcept { return static_cast<double>(next64() >> 11) * 0x1p-53; }

  /// Exactly uniform on 0 .. bound - 1, for bound >= 1: Lemire, "Fast random integer generation in
  /// an interval", 2019. The high word of word * bound, once the few words that would favour some
  /// results are thrown away.
  std::uint32_t below(std::uint32_t bound) noexcept {
    std::uint64_t product = std::uint64_t{next32()} * bound;
    if (static_cast<std::uint32_t>(product) < bound) [[unlikely]] {
      const std::uint32_t excess = (0u - bound) % bound;
      while (static_cast<std::uint32_t>(product) < excess) {
        product = std::uint64_t{next32()} * bound;
      }
    }
    return static_cast<std::uint32_t>(product >> 32);
  }

  /// The same for 64-bit bounds. A small bound takes one word a try, a large one two.
  std::uint64_t below64(std::uint64_t bound) noexcept {
    if (bound <= 0xFFFFFFFF) return below(static_cast<std::uint32_t>(bound));
    Wide product = Wide{next64()} * bound;
    if (static_cast<std::uint64_t>(product) < bound) [[unlikely]] {
      const std::uint64_t excess = (0u - bound) % bound;
      while (static_cast<std::uint64_t>(product) < excess) product = Wide{next64()} * bound;
    }
    return static_cast<std::uint64_t>(product >> 64);
  }

 private:
  __extension__ using Wide = unsigned __int128;

  static constexpr std::size_t kLanes = 16;

  /// Some blocks side by side: loops over lanes, which compilers turn into vector instructions.
  template <std::size_t n>
  void blocks(std::uint32_t* words) noexcept {
    std::array<std::array<std::uint32_t, n>, 4> c;
    BUROPT_VECTOR_LOOP
    for (std::size_t i = 0; i < n; ++i) {
      c[0][i] = counter_[0] + static_cast<std::uint32_t>(i);
      c[1][i] = counter_[1];
      c[2][i] = counter_[2];
      c[3][i] = counter_[3];
    }
    counter_[0] += static_cast<std::uint32_t>(n);
    PhiloxKey key = key_;
    for (int round = 0; round < 10; ++round) {
      BUROPT_VECTOR_LOOP
      for (std::size_t i = 0; i < n; ++i) {
        const std::uint64_t first = std::uint64_t{0xD2511F53} * c[0][i];
        const std::uint64_t second = std::uint64_t{0xCD9E8D57} * c[2][i];
        c[0][i] = static_cast<std::uint32_t>(second >> 32) ^ c[1][i] ^ key[0];
        c[1][i] = static_cast<std::uint32_t>(second);
        c[2][i] = static_cast<std::uint32_t>(first >> 32) ^ c[3][i] ^ key[1];
        c[3][i] = static_cast<std::uint32_t>(first);
      }
      key = {key[0] + 0x9E3779B9u, key[1] + 0xBB67AE85u};
    }
    BUROPT_VECTOR_LOOP
    for (std::size_t i = 0; i < n; ++i) {
      words[4 * i] = c[0][i];
      words[4 * i + 1] = c[1][i];
      words[4 * i + 2] = c[2][i];
      words[4 * i + 3] = c[3][i];
    }
  }

  // Several blocks at a time: they do not depend on each other, so their latencies overlap.
  static constexpr std::size_t kBlocks = 4;

  void refill() noexcept {
    for (std::size_t block = 0; block < kBlocks; ++block) {
      const PhiloxCounter words = philox4x32(counter_, key_);
      for (std::size_t lane = 0; lane < 4; ++lane) words_[4 * block + lane] = words[lane];
      ++counter_[0];
    }
    position_ = 0;
  }

  PhiloxKey key_;
  PhiloxCounter counter_;
  std::array<std::uint32_t, 4 * kBlocks> words_;
  std::size_t position_ = 4 * kBlocks;
};

}  // namespace buropt
