// What a compressor is. Three kinds share their code: those that keep entries (selector.h), those
// that round every entry (quantizer.h) and those that factorize (low_rank.h). Each compressor is a
// file that says only what is its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "compress/bits.h"

namespace buropt {

/// Where the randomness of one worker's message comes from.
struct Draw {
  RandomKey key;
  std::uint32_t worker;
  std::uint32_t stage = 0;  // the compressors of a composition draw in stages of their own

  RandomStream stream() const noexcept { return {key, worker, stage}; }
  /// The same for all workers.
  RandomStream common_stream() const noexcept { return {key, kServer, stage}; }
  Draw next_stage() const noexcept { return {key, worker, stage + 1}; }
};

/// Memory that the rows of one call share: it grows at the first row and stays. All rows are of one
/// dimension and key, and go through one compressor.
struct Scratch {
  std::vector<std::uint32_t> indices;
  std::vector<std::uint64_t> bitmap;          // one bit an entry, all zero between rows
  std::vector<std::uint32_t> assignment;      // PermK's, of all workers
  std::vector<std::uint32_t> assignment_end;  // empty until it is known
  std::vector<double> matrices;

  template <class T>
  std::vector<BitsOf<T>>& magnitudes() noexcept {
    return std::get<std::vector<BitsOf<T>>>(magnitudes_);
  }
  template <class T>
  std::vector<T>& values() noexcept {
    return std::get<std::vector<T>>(values_);
  }
  /// For a compressor inside of a compressor.
  Scratch& inner() {
    if (!inner_) inner_ = std::make_unique<Scratch>();
    return *inner_;
  }

 private:
  std::tuple<std::vector<std::uint32_t>, std::vector<std::uint64_t>> magnitudes_;
  std::tuple<std::vector<float>, std::vector<double>> values_;
  std::unique_ptr<Scratch> inner_;
};

/// Room for n elements; a vector never shrinks here, so that rows do not initialize it again.
template <class U>
U* reserve(std::vector<U>& memory, std::size_t n) {
  if (memory.size() < n) memory.resize(n);
  return memory.data();
}

/// A map of vectors with d entries, 1 <= d < 2^32, and the message that carries its value.
/// Immutable: two calls with the same arguments do the same, on any thread.
class Compressor {
 public:
  virtual ~Compressor() = default;

  virtual const char* name() const noexcept = 0;  // for error messages

  /// Refuses parameters that vectors of d entries do not allow.
  virtual void check(std::uint32_t d) const = 0;

  /// How many workers compress together; 0 if each does so on its own.
  virtual std::uint32_t n_workers() const noexcept { return 0; }

  /// out is what the receiver reads from the message; returns the message's bits. `check(d)` first.
  virtual std::int64_t compress(std::span<const float> x, const Draw& draw, Scratch& scratch,
                                std::span<float> out) const = 0;
  virtual std::int64_t compress(std::span<const double> x, const Draw& draw, Scratch& scratch,
                                std::span<double> out) const = 0;

  /// Writes the message.
  virtual void encode(std::span<const float> x, const Draw& draw, Scratch& scratch,
                      BitWriter& to) const = 0;
  virtual void encode(std::span<const double> x, const Draw& draw, Scratch& scratch,
                      BitWriter& to) const = 0;

  /// Reads the message; may leave `out` half written if it is none, and raises an Error.
  virtual void decode(BitReader& from, const Draw& draw, Scratch& scratch,
                      std::span<float> out) const = 0;
  virtual void decode(BitReader& from, const Draw& draw, Scratch& scratch,
                      std::span<double> out) const = 0;

 protected:
  /// The error of `decode`.
  template <class T>
  [[noreturn]] void refuse(std::size_t d, const char* what) const {
    raise(
        ErrorKind::value,
        "%s.decode: the payload %s for a message of d = %zu entries in float%u; pass the d, dtype "
        "and compressor that it was encoded with",
        name(), what, d, kValueBits<T>);
  }

  template <class T>
  void expect(const BitReader& from, std::uint64_t n_bits, std::size_t d) const {
    if (!from.has(n_bits)) refuse<T>(d, "is too short");
  }
};

/// Refuses the vectors of n workers where a compressor is for another number.
inline void check_workers(const Compressor& compressor, std::size_t n, const char* where) {
  const std::uint32_t together = compressor.n_workers();
  if (together == 0 || n == together) return;
  raise(ErrorKind::value, "%s: it is for %u workers, got the vectors of %zu; write n_workers=%zu",
        where, together, n, n);
}

/// Gives both number types to a class whose templates compress_row, encode_row and decode_row work
/// for either.
template <class Derived, class Base = Compressor>
class ForFloats : public Base {
 public:
  std::int64_t compress(std::span<const float> x, const Draw& draw, Scratch& scratch,
                        std::span<float> out) const final {
    return self().compress_row(x, draw, scratch, out);
  }
  std::int64_t compress(std::span<const double> x, const Draw& draw, Scratch& scratch,
                        std::span<double> out) const final {
    return self().compress_row(x, draw, scratch, out);
  }
  void encode(std::span<const float> x, const Draw& draw, Scratch& scratch,
              BitWriter& to) const final {
    self().encode_row(x, draw, scratch, to);
  }
  void encode(std::span<const double> x, const Draw& draw, Scratch& scratch,
              BitWriter& to) const final {
    self().encode_row(x, draw, scratch, to);
  }
  void decode(BitReader& from, const Draw& draw, Scratch& scratch,
              std::span<float> out) const final {
    self().decode_row(from, draw, scratch, out);
  }
  void decode(BitReader& from, const Draw& draw, Scratch& scratch,
              std::span<double> out) const final {
    self().decode_row(from, draw, scratch, out);
  }

 private:
  const Derived& self() const noexcept { return static_cast<const Derived&>(*this); }
};

/// Refuses a k that a vector of d entries does not allow.
inline void check_k(const char* compressor, std::uint32_t k, std::uint32_t d) {
  if (k >= 1 && k <= d) return;
  raise(ErrorKind::value, "%s.k must be between 1 and d = %u, got %u; %s compressor.k", compressor,
        d, k, k > d ? "lower" : "raise");
}

}  // namespace buropt
