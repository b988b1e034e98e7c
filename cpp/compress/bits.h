// The bytes of a message: a stream of bits, from the lowest bit of the first byte up,
// little-endian, with zero bits up to a whole byte at the end.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace buropt {

/// The unsigned integer that holds the bits of a float.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <class T>
inline constexpr std::uint32_t kValueBits = 8 * sizeof(T);

class BitWriter {
 public:
  /// Room for so many bits more.
  void reserve(std::int64_t n_bits) {
    const std::size_t needed = n_bytes_ + static_cast<std::size_t>(n_bits) / 8 + 16;
    if (bytes_.size() < needed) bytes_.resize(std::max(needed, 2 * bytes_.size()));
  }

  /// Appends n numbers of `width` bits each, at most 32; bits above these must be 0.
  void put_all(const std::uint32_t* numbers, std::size_t n, std::uint32_t width) {
    reserve(static_cast<std::int64_t>(n) * width);
    std::uint8_t* next = bytes_.data() + n_bytes_;
    std::uint64_t pending = pending_;
    std::uint32_t n_pending = n_pending_;
    for (std::size_t i = 0; i < n; ++i) {
      pending |= std::uint64_t{numbers[i]} << n_pending;
      n_pending += width;
      for (std::uint32_t j = 0; j < 8; ++j) next[j] = static_cast<std::uint8_t>(pending >> 8 * j);
      next += n_pending / 8;  // whole bytes are done, the others will be written over
      pending >>= n_pending / 8 * 8;
      n_pending %= 8;
    }
    n_bytes_ = static_cast<std::size_t>(next - bytes_.data());
    pending_ = pending;
    n_pending_ = n_pending;
  }

  void put(std::uint32_t number, std::uint32_t width) { put_all(&number, 1, width); }

  /// Appends the floats value(0), ..., value(n - 1).
  template <class T, class F>
  void put_values(std::size_t n, F&& value) {
    constexpr std::size_t kChunk = 256;
    constexpr std::size_t kWords = sizeof(T) / 4;
    std::array<std::uint32_t, kChunk * kWords> words;
    for (std::size_t start = 0; start < n; start += kChunk) {
      const std::size_t size = std::min(kChunk, n - start);
      for (std::size_t i = 0; i < size; ++i) {
        const auto bits = std::bit_cast<BitsOf<T>>(static_cast<T>(value(start + i)));
        words[kWords * i] = static_cast<std::uint32_t>(bits);
        if constexpr (kWords == 2) words[2 * i + 1] = static_cast<std::uint32_t>(bits >> 32);
      }
      put_all(words.data(), kWords * size, 32);
    }
  }

  /// The bytes; the writer is empty then.
  std::vector<std::uint8_t> finish() {
    bytes_.resize(n_bytes_ + (n_pending_ > 0));
    return std::move(bytes_);
  }

 private:
  std::vector<std::uint8_t> bytes_;  // with room behind the first n_bytes_
  std::size_t n_bytes_ = 0;
  std::uint64_t pending_ = 0;
  std::uint32_t n_pending_ = 0;  // below 8
};

/// Reads what a BitWriter wrote. Past the end there are zeros: ask `has` before.
class BitReader {
 public:
  explicit BitReader(std::span<const std::uint8_t> bytes) noexcept : bytes_(bytes) {}

  bool has(std::uint64_t n_bits) const noexcept { return position_ + n_bits <= 8 * bytes_.size(); }

  /// The next `width` bits, at most 32.
  std::uint32_t get(std::uint32_t width) noexcept {
    const std::uint64_t bits = from_byte(position_ / 8) >> position_ % 8;
    position_ += width;
    return static_cast<std::uint32_t>(bits & ((std::uint64_t{1} << width) - 1));
  }

  template <class T>
  T get_value() noexcept {
    BitsOf<T> bits = get(32);
    if constexpr (sizeof(T) == 8) bits |= std::uint64_t{get(32)} << 32;
    return std::bit_cast<T>(bits);
  }

  /// Whether nothing is left but less than a byte of zeros.
  bool at_end() const noexcept {
    const bool is_last = position_ + 8 > 8 * bytes_.size();
    return is_last && from_byte(position_ / 8) >> position_ % 8 == 0;
  }

 private:
  std::uint64_t from_byte(std::size_t first) const noexcept {
    std::uint64_t result = 0;
    if (first + 8 <= bytes_.size()) [[likely]] {
      for (std::size_t j = 0; j < 8; ++j) result |= std::uint64_t{bytes_[first + j]} << 8 * j;
    } else {
      for (std::size_t j = 0; first + j < bytes_.size(); ++j) {
        result |= std::uint64_t{bytes_[first + j]} << 8 * j;
      }
    }
    return result;
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;  // in bits
};

}  // namespace buropt
