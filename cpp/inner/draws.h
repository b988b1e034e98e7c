// Draws of many rounds at once: the same numbers as those that each round's key gives alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/philox.h"

namespace buropt {

/// The first four words of the streams of rounds that follow each other. The blocks of Philox do
/// not depend on each other, so that the compiler works on many of them at once.
class FirstWords {
 public:
  static constexpr std::size_t kRounds = 32;
  static constexpr std::size_t kWords = 4;

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
    for (std::size_t k = 0; k < kWords; ++k) std::copy_n(counter[k], kRounds, words_[k]);
  }

  /// Word k of round i.
  std::uint32_t word(std::size_t k, std::size_t i) const noexcept { return words_[k][i]; }
  /// What RandomStream::uniform gives in round i.
  double uniform(std::size_t i) const noexcept {
    const std::uint64_t word = words_[0][i] | std::uint64_t{words_[1][i]} << 32;
    return static_cast<double>(word >> 11) * 0x1p-53;
  }

 private:
  std::uint32_t words_[kWords][kRounds];
};

inline RandomKey later(const RandomKey& key, std::uint64_t rounds) noexcept {
  return {key.seed, key.round + rounds, key.purpose};
}

/// The first `size` distinct numbers of 0 .. n - 1 of a round's stream; seen (n,) holds for each
/// number the last mark that it was drawn with.
inline void draw_distinct(const RandomKey& key, std::int64_t n, std::int64_t size,
                          std::int64_t mark, std::vector<std::int64_t>& seen, std::int64_t* out) {
  seen.resize(static_cast<std::size_t>(n), -1);
  RandomStream stream(key, kServer);
  for (std::int64_t k = 0; k < size;) {
    const auto j = static_cast<std::int64_t>(stream.below64(static_cast<std::uint64_t>(n)));
    if (seen[static_cast<std::size_t>(j)] == mark) continue;
    seen[static_cast<std::size_t>(j)] = mark;
    out[k++] = j;
  }
}

/// In each of count rounds a uniform subset of 0 .. n - 1 as a row of out (count, size): the first
/// distinct numbers of the round's stream; of more than half of all, what its complement leaves.
inline void draw_subsets(const RandomKey& key, std::int64_t n, std::int64_t size,
                         std::int64_t count, std::int64_t* out) {
  constexpr auto kRounds = static_cast<std::int64_t>(FirstWords::kRounds);
  std::vector<std::int64_t> seen;
  const auto round = [&](std::int64_t t) { return later(key, static_cast<std::uint64_t>(t)); };
  if (size <= static_cast<std::int64_t>(FirstWords::kWords) && (2 * size <= n || size == 1) &&
      n <= 0xFFFFFFFF) {
    for (std::int64_t begin = 0; begin < count; begin += kRounds) {
      const FirstWords words(round(begin));
      for (std::int64_t t = begin; t < std::min(begin + kRounds, count); ++t, out += size) {
        bool plain = true;  // no word that may be thrown away, and no number twice
        for (std::int64_t k = 0; k < size; ++k) {
          const std::uint64_t product =
              std::uint64_t{
                  words.word(static_cast<std::size_t>(k), static_cast<std::size_t>(t - begin))} *
              static_cast<std::uint64_t>(n);
          out[k] = static_cast<std::int64_t>(product >> 32);
          plain = plain && static_cast<std::uint32_t>(product) >= n;
          for (std::int64_t i = 0; i < k; ++i) plain = plain && out[i] != out[k];
        }
        if (!plain) [[unlikely]]
          draw_distinct(round(t), n, size, t, seen, out);
      }
    }
    return;
  }
  const std::int64_t drawn = std::min(size, n - size);
  for (std::int64_t t = 0; t < count; ++t, out += size) {
    draw_distinct(round(t), n, drawn, t, seen, out);
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

/// Finds places among ascending ends. A guide says where to begin, so that a search takes few
/// steps.
class Places {
 public:
  explicit Places(std::vector<double> ends)
      : ends_(std::move(ends)),
        scale_(static_cast<double>(ends_.size()) / ends_.back()),
        guide_(ends_.size() + 1, 0) {
    std::int64_t i = 0;
    for (std::size_t b = 0; b < guide_.size(); ++b) {
      // A bucket too low, for the roundings.
      while (i < last() && end(i) * scale_ <= static_cast<double>(b) - 1) ++i;
      guide_[b] = static_cast<std::int32_t>(i);
    }
  }

  std::size_t size() const noexcept { return ends_.size(); }
  /// The last of the ends.
  double total() const noexcept { return ends_.back(); }

  /// For each point, below the total, the first i with ends_i > point.
  void find(const double* points, std::int64_t count, std::int64_t* out) const noexcept {
    for (std::int64_t k = 0; k < count; ++k) {
      const auto bucket = static_cast<std::size_t>(points[k] * scale_);
      std::int64_t place = guide_[std::min(bucket, guide_.size() - 1)];
      while (place < last() && end(place) <= points[k]) ++place;
      out[k] = place;
    }
  }

 private:
  std::int64_t last() const noexcept { return static_cast<std::int64_t>(ends_.size()) - 1; }
  double end(std::int64_t i) const noexcept { return ends_[static_cast<std::size_t>(i)]; }

  std::vector<double> ends_;
  double scale_;  ///< buckets for the unit of a point
  std::vector<std::int32_t> guide_;
};

}  // namespace buropt
