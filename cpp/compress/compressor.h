// What a compressor is, and everything that all compressors share. Start at the concept Compressor.
//
// A compressor keeps some entries of a worker's vector, perhaps scaled, and drops the others. It
// only says which and how many; compressing all the workers' rows, counting bits, and turning a row
// into bytes and back are written once, here.
//
// A message for a vector of d entries is
//
//   the kept values         IEEE, little-endian, in the order of their indices
//   their indices           ascending, ceil(log2 d) bits each, packed from the lowest bit up
//   zero bits               up to a whole byte
//
// and the indices are left out when the receiver can find them without being told.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "base/error.h"
#include "base/philox.h"

namespace buropt {

/// The unsigned integer that holds the bits of a float.
template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

using Indices = std::span<const std::uint32_t>;

/// Memory that the rows of one call share: it grows at the first row and stays.
template <class T>
struct Scratch {
  std::vector<std::uint32_t> indices;
  std::vector<std::uint64_t> bitmap;  // one bit an entry, all zero between rows
  std::vector<BitsOf<T>> magnitudes;
};

/// A compressor of vectors with d entries, 1 <= d < 2^32. Stateless: two calls with the same
/// arguments do the same, on any thread.
///
///   kName          for error messages
///   kept(d)        how many entries a message carries; d means that nothing is lost
///   sends_indices  whether the receiver has to be told which
///   scale(d)       factor on the kept values; exactly 1 when kept(d) == d
///   select         the ascending indices of the kept entries, in scratch memory; unless they are
///                  sent, a function of d, key and worker alone: the receiver passes an empty x
template <class C>
concept Compressor =
    requires(const C c, std::uint32_t d, std::span<const float> x32, std::span<const double> x64,
             const RandomKey& key, Scratch<float>& scratch32, Scratch<double>& scratch64) {
      { C::kName } -> std::convertible_to<const char*>;
      { c.kept(d) } -> std::same_as<std::uint32_t>;
      { c.sends_indices() } -> std::same_as<bool>;
      { c.scale(d) } -> std::same_as<double>;
      { c.select(x32, d, key, std::uint32_t{}, scratch32) } -> std::same_as<Indices>;
      { c.select(x64, d, key, std::uint32_t{}, scratch64) } -> std::same_as<Indices>;
    };

/// Room for n elements; a vector never shrinks here, so that rows do not initialize it again.
template <class U>
U* reserve(std::vector<U>& memory, std::size_t n) {
  if (memory.size() < n) memory.resize(n);
  return memory.data();
}

/// 0, 1, ..., d - 1: the selection of a compressor that keeps everything.
template <class T>
Indices select_all(std::uint32_t d, Scratch<T>& scratch) {
  std::uint32_t* indices = reserve(scratch.indices, d);
  for (std::uint32_t i = 0; i < d; ++i) indices[i] = i;
  return {indices, d};
}

/// Refuses a k that a vector of d entries does not allow.
inline void check_k(const char* compressor, std::uint32_t k, std::uint32_t d) {
  if (k >= 1 && k <= d) return;
  raise(ErrorKind::value, "%s.k must be between 1 and d = %u, got %u; %s compressor.k", compressor,
        d, k, k > d ? "lower" : "raise");
}

/// Bits of one index among d: ceil(log2 d).
constexpr std::uint32_t index_bits(std::uint32_t d) noexcept {
  return static_cast<std::uint32_t>(std::bit_width(d - 1));
}

/// Bits of a message with so many values and indices. The payload is this, rounded up to bytes.
template <class T>
constexpr std::int64_t message_bits(std::size_t values, std::size_t indices,
                                    std::uint32_t d) noexcept {
  return static_cast<std::int64_t>(values * 8 * sizeof(T) + indices * index_bits(d));
}

/// What the sender puts in the place of x. The product is rounded once, for float32 too.
template <class T>
T scaled(T x, double scale) noexcept {
  return static_cast<T>(static_cast<double>(x) * scale);
}

/// Compresses one row: out is what the receiver reads from the message, zero where nothing was
/// sent. Returns the message's bits.
template <Compressor C, class T>
std::int64_t compress_row(const C& compressor, std::span<const T> x, const RandomKey& key,
                          std::uint32_t worker, Scratch<T>& scratch, std::span<T> out) {
  const auto d = static_cast<std::uint32_t>(x.size());
  std::size_t sent = d;
  if (compressor.kept(d) == d) {
    std::memcpy(out.data(), x.data(), x.size_bytes());
  } else {
    const Indices indices = compressor.select(x, d, key, worker, scratch);
    const double scale = compressor.scale(d);
    std::memset(out.data(), 0, out.size_bytes());
    for (const std::uint32_t i : indices) out[i] = scaled(x[i], scale);
    sent = indices.size();
  }
  return message_bits<T>(sent, compressor.sends_indices() ? sent : 0, d);
}

/// Appends the lowest `width` bits of each index, first index in the lowest bits of the first byte.
inline void pack(Indices indices, std::uint32_t width, std::vector<std::uint8_t>& payload) {
  std::uint64_t pending = 0;
  std::uint32_t n_pending = 0;  // below 8 between two indices
  for (const std::uint32_t i : indices) {
    pending |= std::uint64_t{i} << n_pending;
    n_pending += width;
    for (; n_pending >= 8; n_pending -= 8, pending >>= 8) {
      payload.push_back(static_cast<std::uint8_t>(pending));
    }
  }
  if (n_pending > 0) payload.push_back(static_cast<std::uint8_t>(pending));
}

/// The inverse of pack. False if the bits are not n ascending indices below d followed by zeros.
inline bool unpack(const std::uint8_t* packed, std::uint32_t n, std::uint32_t d,
                   std::uint32_t* indices) noexcept {
  const std::uint32_t width = index_bits(d);
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  std::uint64_t pending = 0;
  std::uint32_t n_pending = 0;
  std::uint64_t lowest = 0;  // that the next index may be
  for (std::uint32_t j = 0; j < n; ++j) {
    for (; n_pending < width; n_pending += 8) pending |= std::uint64_t{*packed++} << n_pending;
    indices[j] = static_cast<std::uint32_t>(pending & mask);
    if (indices[j] < lowest || indices[j] >= d) return false;
    lowest = std::uint64_t{indices[j]} + 1;
    pending >>= width;
    n_pending -= width;
  }
  return pending == 0;
}

/// The bytes of the message for one row.
template <Compressor C, class T>
std::vector<std::uint8_t> encode(const C& compressor, std::span<const T> x, const RandomKey& key,
                                 std::uint32_t worker) {
  const auto d = static_cast<std::uint32_t>(x.size());
  Scratch<T> scratch;
  const Indices indices = compressor.select(x, d, key, worker, scratch);
  const double scale = compressor.scale(d);
  const bool lossless = compressor.kept(d) == d;  // then even the bits of a NaN are kept

  std::vector<std::uint8_t> payload;
  for (const std::uint32_t i : indices) {
    const auto value = std::bit_cast<BitsOf<T>>(lossless ? x[i] : scaled(x[i], scale));
    for (std::size_t byte = 0; byte < sizeof(T); ++byte) {
      payload.push_back(static_cast<std::uint8_t>(value >> (8 * byte)));
    }
  }
  if (compressor.sends_indices()) pack(indices, index_bits(d), payload);
  return payload;
}

/// Reads a message back into a dense row. Refuses bytes that encode cannot have written.
template <Compressor C, class T>
void decode(const C& compressor, std::span<const std::uint8_t> payload, const RandomKey& key,
            std::uint32_t worker, std::span<T> out) {
  const auto d = static_cast<std::uint32_t>(out.size());
  const std::uint32_t kept = compressor.kept(d);
  const bool packed = compressor.sends_indices();
  const std::int64_t n_bytes = (message_bits<T>(kept, packed ? kept : 0, d) + 7) / 8;
  if (payload.size() != static_cast<std::size_t>(n_bytes)) {
    raise(ErrorKind::value,
          "%s.decode: a message for d = %u in float%zu has %lld bytes, got %zu; pass the d, dtype "
          "and compressor that it was encoded with",
          C::kName, d, 8 * sizeof(T), static_cast<long long>(n_bytes), payload.size());
  }

  Scratch<T> scratch;
  const std::uint8_t* const values = payload.data();
  Indices indices;
  if (packed) {
    std::uint32_t* received = reserve(scratch.indices, kept);
    if (!unpack(values + kept * sizeof(T), kept, d, received)) {
      raise(ErrorKind::value,
            "%s.decode: the message is corrupt: its indices are not ascending numbers below d = %u",
            C::kName, d);
    }
    indices = {received, kept};
  } else {
    indices = compressor.select(std::span<const T>(), d, key, worker, scratch);
  }

  std::fill(out.begin(), out.end(), T(0));
  for (std::size_t j = 0; j < kept; ++j) {
    BitsOf<T> value = 0;
    for (std::size_t byte = 0; byte < sizeof(T); ++byte) {
      value |= BitsOf<T>{values[j * sizeof(T) + byte]} << (8 * byte);
    }
    out[indices[j]] = std::bit_cast<T>(value);
  }
}

}  // namespace buropt
