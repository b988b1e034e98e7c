// Compressors that send a short code for every entry. A message is
//
//   the header      a number that all entries share, such as a norm, IEEE; not every rule has one
//   the codes       of all entries in their order, of one width
//
// A rule says
//
//   kName, check(d)
//   kHasHeader, kIsRandom
//   width<T>()                   bits of a code, at most 32
//   header(x)                    the shared number; what is not finite is sent as a NaN
//   code(x, header, random)      of one entry; `random` are as many random bits as x has; for a
//                                header that is finite
//   value(code, header)          what the receiver makes of it; a NaN for a header that is one
//
// so that a NaN or an infinity in the vector, or a norm that overflows, is seen by the receiver in
// every entry and never hidden.
#pragma once

#include <array>
#include <cmath>

#include "compress/compressor.h"

namespace buropt {

/// As a number in [0, 1): a multiple of 2^-32 or 2^-53.
inline double unit(std::uint32_t random) noexcept { return random * 0x1p-32; }
inline double unit(std::uint64_t random) noexcept {
  return static_cast<double>(random >> 11) * 0x1p-53;
}

template <class Rule>
class QuantizerOf final : public ForFloats<QuantizerOf<Rule>> {
 public:
  explicit QuantizerOf(const Rule& rule) : rule_(rule) {}

  const char* name() const noexcept override { return Rule::kName; }
  void check(std::uint32_t d) const override { rule_.check(d); }

  template <class T>
  std::int64_t compress_row(std::span<const T> x, const Draw& draw, Scratch&,
                            std::span<T> out) const {
    const T header = header_of(x);
    T* next = out.data();
    each_chunk(x, header, draw, [&](const std::uint32_t* codes, std::size_t n) {
      T* const to = next;  // these are copies, so that nothing changes them in the loop
      const T shared = header;
      const Rule rule = rule_;
      for (std::size_t i = 0; i < n; ++i) to[i] = rule.template value<T>(codes[i], shared);
      next += n;
    });
    return message_bits<T>(x.size());
  }

  template <class T>
  void encode_row(std::span<const T> x, const Draw& draw, Scratch&, BitWriter& to) const {
    const T header = header_of(x);
    to.reserve(message_bits<T>(x.size()));
    if (Rule::kHasHeader) to.put_values<T>(1, [&](std::size_t) { return header; });
    const std::uint32_t width = rule_.template width<T>();
    each_chunk(x, header, draw,
               [&](const std::uint32_t* codes, std::size_t n) { to.put_all(codes, n, width); });
  }

  template <class T>
  void decode_row(BitReader& from, const Draw&, Scratch&, std::span<T> out) const {
    this->template expect<T>(from, static_cast<std::uint64_t>(message_bits<T>(out.size())),
                             out.size());
    const T header = Rule::kHasHeader ? from.get_value<T>() : T(0);
    const std::uint32_t width = rule_.template width<T>();
    const Rule rule = rule_;
    BitReader codes = from;
    for (T& entry : out) {
      entry = rule.template value<T>(codes.get(width), header);
    }
    from = codes;
  }

 private:
  static constexpr std::size_t kChunk = 256;

  template <class T>
  std::int64_t message_bits(std::size_t d) const noexcept {
    return (Rule::kHasHeader ? kValueBits<T> : 0) +
           static_cast<std::int64_t>(d) * rule_.template width<T>();
  }

  template <class T>
  T header_of(std::span<const T> x) const {
    if constexpr (Rule::kHasHeader) {
      const T header = rule_.header(x);
      return std::isfinite(header) ? header : std::numeric_limits<T>::quiet_NaN();
    } else {
      return T(0);
    }
  }

  /// Calls f(codes, n) for chunks of the entries, in their order.
  template <class T, class F>
  void each_chunk(std::span<const T> x, T header, const Draw& draw, F&& f) const {
    std::array<std::uint32_t, kChunk> codes{};
    const Rule rule = rule_;
    const bool is_known = std::isfinite(header);
    RandomWords<T> random(draw);
    for (std::size_t start = 0; start < x.size(); start += kChunk) {
      const std::size_t n = std::min(kChunk, x.size() - start);
      if (is_known) {
        const BitsOf<T>* words = Rule::kIsRandom ? random.next(n) : random.zeros();
        for (std::size_t i = 0; i < n; ++i) codes[i] = rule.code(x[start + i], header, words[i]);
      }
      f(codes.data(), n);
    }
  }

  /// Random bits, one number of T's size an entry, a chunk at a time.
  template <class T>
  class RandomWords {
   public:
    explicit RandomWords(const Draw& draw) noexcept : stream_(draw.stream()) {}

    const BitsOf<T>* zeros() const noexcept { return words_.data(); }

    const BitsOf<T>* next(std::size_t n) noexcept {
      constexpr std::size_t kPerBlock = 16 / sizeof(T);
      std::array<std::uint32_t, kChunk * sizeof(T) / 4> halves;
      stream_.fill(halves.data(), (n + kPerBlock - 1) / kPerBlock);
      for (std::size_t i = 0; i < n; ++i) {
        if constexpr (sizeof(T) == 4) {
          words_[i] = halves[i];
        } else {
          words_[i] = halves[2 * i] | std::uint64_t{halves[2 * i + 1]} << 32;
        }
      }
      return words_.data();
    }

   private:
    RandomStream stream_;
    std::array<BitsOf<T>, kChunk> words_{};
  };

  Rule rule_;
};

}  // namespace buropt
