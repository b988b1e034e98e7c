// Draws of many rounds at once: the same numbers as those that each round's key gives alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/philox.h"

namespace buropt {

/// The first two words of the stream of rounds that follow each other. The blocks of Philox do not
/// depend on each other, so that the compiler works on many of them at once.
class FirstWords {
 public:
  static constexpr std::size_t kRounds = 32;

  /// key: of the first of kRounds rounds.
  explicit FirstWords(const RandomKey& key) noexcept {
    std::uint32_t counter[4][kRounds];
    for (std::size_t i = 0; i < kRounds; ++i) {
      const std::uint64_t round = key.round + i;
      counter[0][i] = 0;
      counter[1][i] = kServer;
      counter[2][i] = static_cast<std::uint32_t>(round);
      counter[3][i] = static_cast<std::uint32_t>(round >> 32) | key.purpose << 16;
    }
    std::uint32_t low = static_cast<std::uint32_t>(key.seed);
    std::uint32_t high = static_cast<std::uint32_t>(key.seed >> 32);
    for (int turn = 0; turn < 10; ++turn) {
      for (std::size_t i = 0; i < kRounds; ++i) {
        const std::uint64_t a = std::uint64_t{0xD2511F53} * counter[0][i];
        const std::uint64_t b = std::uint64_t{0xCD9E8D57} * counter[2][i];
        counter[0][i] = static_cast<std::uint32_t>(b >> 32) ^ counter[1][i] ^ low;
        counter[1][i] = static_cast<std::uint32_t>(b);
        counter[2][i] = static_cast<std::uint32_t>(a >> 32) ^ counter[3][i] ^ high;
        counter[3][i] = static_cast<std::uint32_t>(a);
      }
      low += 0x9E3779B9u;
      high += 0xBB67AE85u;
    }
    std::copy_n(counter[0], kRounds, first_);
    std::copy_n(counter[1], kRounds, second_);
  }

  std::uint32_t first(std::size_t i) const noexcept { return first_[i]; }
  /// What RandomStream::uniform gives in round i.
  double uniform(std::size_t i) const noexcept {
    const std::uint64_t word = first_[i] | std::uint64_t{second_[i]} << 32;
    return static_cast<double>(word >> 11) * 0x1p-53;
  }

 private:
  std::uint32_t first_[kRounds];
  std::uint32_t second_[kRounds];
};

inline RandomKey later(const RandomKey& key, std::uint64_t rounds) noexcept {
  return {key.seed, key.round + rounds, key.purpose};
}

/// One number of 0 .. n - 1 in each of count rounds, n below 2^32.
inline void draw_one_each(const RandomKey& key, std::uint32_t n, std::int64_t count,
                          std::int64_t* out) noexcept {
  constexpr auto kRounds = static_cast<std::int64_t>(FirstWords::kRounds);
  for (std::int64_t begin = 0; begin < count; begin += kRounds) {
    const auto first = static_cast<std::uint64_t>(begin);
    const FirstWords words(later(key, first));
    const std::int64_t rounds = std::min(kRounds, count - begin);
    for (std::int64_t i = 0; i < rounds; ++i) {
      const std::uint64_t product = std::uint64_t{words.first(static_cast<std::size_t>(i))} * n;
      out[begin + i] = static_cast<std::int64_t>(product >> 32);
      if (static_cast<std::uint32_t>(product) < n) [[unlikely]] {
        // Perhaps one of the words that are thrown away.
        RandomStream stream(later(key, first + static_cast<std::uint64_t>(i)), kServer);
        out[begin + i] = stream.below(n);
      }
    }
  }
}

/// In each of count rounds a uniform subset of 0 .. n - 1 as a row of out (count, size): the first
/// distinct numbers of the round's stream; of more than half of all, what its complement leaves.
inline void draw_subsets(const RandomKey& key, std::int64_t n, std::int64_t size,
                         std::int64_t count, std::int64_t* out) {
  if (size == 1 && n <= 0xFFFFFFFF) {
    draw_one_each(key, static_cast<std::uint32_t>(n), count, out);
    return;
  }
  const std::int64_t drawn = std::min(size, n - size);
  std::vector<std::int64_t> seen(static_cast<std::size_t>(n), -1);  // in which round
  for (std::int64_t t = 0; t < count; ++t, out += size) {
    RandomStream stream(later(key, static_cast<std::uint64_t>(t)), kServer);
    for (std::int64_t k = 0; k < drawn;) {
      const auto j = static_cast<std::int64_t>(stream.below64(static_cast<std::uint64_t>(n)));
      if (seen[static_cast<std::size_t>(j)] == t) continue;
      seen[static_cast<std::size_t>(j)] = t;
      out[k++] = j;
    }
    if (drawn == size) continue;
    std::int64_t k = 0;
    for (std::int64_t j = 0; j < n; ++j) {
      if (seen[static_cast<std::size_t>(j)] != t) out[k++] = j;
    }
  }
}

/// The number in [0, 1) of each of count rounds.
inline void draw_uniforms(const RandomKey& key, std::int64_t count, double* out) noexcept {
  constexpr auto kRounds = static_cast<std::int64_t>(FirstWords::kRounds);
  for (std::int64_t begin = 0; begin < count; begin += kRounds) {
    const FirstWords words(later(key, static_cast<std::uint64_t>(begin)));
    for (std::int64_t i = 0; i < std::min(kRounds, count - begin); ++i) {
      out[begin + i] = words.uniform(static_cast<std::size_t>(i));
    }
  }
}

}  // namespace buropt
