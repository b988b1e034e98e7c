// The bytes of a message: a stream of bits, from the lowest bit of the first byte up,
// little-endian, with zero bits up to a whole byte at the end.
#pragma once

#include <algorithm>
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
  /// Room for so many bits more; not needed, but saves copies of a long message.
  void reserve(std::int64_t n_bits) {
    const std::size_t needed = n_bytes_ + static_cast<std::size_t>(n_bits) / 8 + 16;
    if (bytes_.size() < needed) bytes_.resize(needed);
  }

  /// Appends the lowest `width` bits, at most 64, of `bits`; those above must be 0.
  void put(std::uint64_t bits, std::uint32_t width) {
    pending_ |= bits << n_pending_;
    n_pending_ += width;
    if (n_pending_ < 64) return;
    append(8);
    n_pending_ -= 64;
    pending_ = n_pending_ == 0 ? 0 : bits >> (width - n_pending_);
  }

  template <class T>
  void put_value(T value) {
    put(std::bit_cast<BitsOf<T>>(value), kValueBits<T>);
  }

  /// The bytes; the writer is empty then.
  std::vector<std::uint8_t> finish() {
    append((n_pending_ + 7) / 8);
    bytes_.resize(n_bytes_);
    return std::move(bytes_);
  }

 private:
  /// The first bytes of `pending_`; the others are written over.
  void append(std::uint32_t n_bytes) {
    if (bytes_.size() < n_bytes_ + 8) bytes_.resize(2 * n_bytes_ + 64);
    std::uint8_t* const next = bytes_.data() + n_bytes_;
    for (std::uint32_t i = 0; i < 8; ++i) next[i] = static_cast<std::uint8_t>(pending_ >> 8 * i);
    n_bytes_ += n_bytes;
  }

  std::vector<std::uint8_t> bytes_;  // with room behind the first n_bytes_
  std::size_t n_bytes_ = 0;
  std::uint64_t pending_ = 0;
  std::uint32_t n_pending_ = 0;  // below 64 between two calls
};

/// Reads what a BitWriter wrote. Past the end it reads zeros: ask `has` before.
class BitReader {
 public:
  explicit BitReader(std::span<const std::uint8_t> bytes) noexcept : bytes_(bytes) {}

  bool has(std::uint64_t n_bits) const noexcept {
    return n_bits <= n_pending_ + 8 * std::uint64_t{bytes_.size() - position_};
  }

  std::uint64_t get(std::uint32_t width) noexcept {
    std::uint64_t bits = pending_;
    if (width <= n_pending_) {
      pending_ = width == 64 ? 0 : pending_ >> width;
      n_pending_ -= width;
    } else {
      const std::uint32_t missing = width - n_pending_;
      refill();
      bits |= pending_ << (width - missing);
      pending_ = missing == 64 ? 0 : pending_ >> missing;
      n_pending_ = std::max(n_pending_, missing) - missing;
    }
    return width == 64 ? bits : bits & ((std::uint64_t{1} << width) - 1);
  }

  template <class T>
  T get_value() noexcept {
    return std::bit_cast<T>(static_cast<BitsOf<T>>(get(kValueBits<T>)));
  }

  /// Whether nothing is left but less than a byte of zeros.
  bool at_end() const noexcept {
    return position_ == bytes_.size() && n_pending_ < 8 && pending_ == 0;
  }

 private:
  void refill() noexcept {
    const std::size_t n_bytes = std::min<std::size_t>(8, bytes_.size() - position_);
    pending_ = 0;
    for (std::size_t i = 0; i < n_bytes; ++i) {
      pending_ |= std::uint64_t{bytes_[position_ + i]} << 8 * i;
    }
    position_ += n_bytes;
    n_pending_ = static_cast<std::uint32_t>(8 * n_bytes);
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;
  std::uint64_t pending_ = 0;
  std::uint32_t n_pending_ = 0;
};

}  // namespace buropt
