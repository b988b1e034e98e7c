// Compressors that keep some entries, perhaps scaled, and drop the others. A message is
//
//   the places      what the receiver has to be told to know which entries follow
//   the entries     IEEE, in the order of their indices
//
// A rule says which entries are kept, with what factor, and how their places are told:
//
//   kName, check(d)
//   kBlind            whether `select` does not look at x, so that entries can be chosen before
//   kept(d)           how many entries are kept, at most
//   scale(d)          factor on the kept entries; exactly 1 where nothing is lost
//   select            the kept entries, in scratch memory or all of them
//   place_bits        how many bits the places of a selection take
//   write_places, read_places     read_places gives nothing for places that cannot be
#pragma once

#include <algorithm>
#include <cstring>
#include <optional>

#include "compress/compressor.h"

namespace buropt {

/// Ascending indices of entries; without `indices`, all entries or none.
struct Selection {
  const std::uint32_t* indices;
  std::uint32_t size;

  static Selection all(std::uint32_t d) noexcept { return {nullptr, d}; }
  static Selection none() noexcept { return {nullptr, 0}; }

  std::uint32_t operator[](std::uint32_t j) const noexcept {
    return indices == nullptr ? j : indices[j];
  }
};

/// Bits of one index among d: ceil(log2 d).
constexpr std::uint32_t index_bits(std::uint32_t d) noexcept {
  return static_cast<std::uint32_t>(std::bit_width(d - 1));
}

/// Each index with ceil(log2 d) bits, ascending.
inline void write_indices(const Selection& kept, std::uint32_t d, BitWriter& to) {
  for (std::uint32_t j = 0; j < kept.size; ++j) to.put(kept[j], index_bits(d));
}

/// The inverse, into indices: whether they are n ascending numbers below d.
inline bool read_indices(BitReader& from, std::uint32_t n, std::uint32_t d,
                         std::uint32_t* indices) noexcept {
  if (!from.has(std::uint64_t{n} * index_bits(d))) return false;
  std::uint64_t lowest = 0;  // that the next index may be
  for (std::uint32_t j = 0; j < n; ++j) {
    indices[j] = from.get(index_bits(d));
    if (indices[j] < lowest || indices[j] >= d) return false;
    lowest = std::uint64_t{indices[j]} + 1;
  }
  return true;
}

inline std::optional<Selection> read_selection(BitReader& from, std::uint32_t n, std::uint32_t d,
                                               Scratch& scratch) {
  std::uint32_t* indices = reserve(scratch.indices, n);
  if (!read_indices(from, n, d, indices)) return std::nullopt;
  return Selection{indices, n};
}

/// What the sender puts in the place of x: the product, rounded once, for float32 too.
template <class T>
T scaled(T x, double scale) noexcept {
  return scale == 1 ? x : static_cast<T>(static_cast<double>(x) * scale);
}

/// Any compressor of this kind, also for use inside of a composition.
class Selector : public ForFloats<Selector> {
 public:
  virtual std::uint32_t kept(std::uint32_t d) const = 0;
  virtual double scale(std::uint32_t d) const = 0;
  virtual Selection select(std::span<const float> x, std::uint32_t d, const Draw& draw,
                           Scratch& scratch) const = 0;
  virtual Selection select(std::span<const double> x, std::uint32_t d, const Draw& draw,
                           Scratch& scratch) const = 0;
  virtual std::int64_t place_bits(std::uint32_t n_kept, std::uint32_t d) const = 0;
  virtual void write_places(const Selection& kept, std::uint32_t d, BitWriter& to) const = 0;
  virtual std::optional<Selection> read_places(BitReader& from, std::uint32_t d, const Draw& draw,
                                               Scratch& scratch) const = 0;
  virtual bool is_blind() const noexcept = 0;

  template <class T>
  std::int64_t message_bits(std::uint32_t n_kept, std::uint32_t d) const {
    return place_bits(n_kept, d) + std::int64_t{n_kept} * kValueBits<T>;
  }

  template <class T>
  std::int64_t compress_row(std::span<const T> x, const Draw& draw, Scratch& scratch,
                            std::span<T> out) const {
    const auto d = static_cast<std::uint32_t>(x.size());
    const Selection kept = select(x, d, draw, scratch);
    const double factor = scale(d);
    if (kept.size == d && factor == 1) {
      std::memcpy(out.data(), x.data(), x.size_bytes());
    } else {
      if (kept.size < d) std::memset(out.data(), 0, out.size_bytes());
      for (std::uint32_t j = 0; j < kept.size; ++j) {
        const std::uint32_t i = kept[j];
        out[i] = scaled(x[i], factor);
      }
    }
    return message_bits<T>(kept.size, d);
  }

  template <class T>
  void encode_row(std::span<const T> x, const Draw& draw, Scratch& scratch, BitWriter& to) const {
    const auto d = static_cast<std::uint32_t>(x.size());
    const Selection kept = select(x, d, draw, scratch);
    const double factor = scale(d);
    to.reserve(message_bits<T>(kept.size, d));
    write_places(kept, d, to);
    to.put_values<T>(kept.size, [&](std::size_t j) {
      return scaled(x[kept[static_cast<std::uint32_t>(j)]], factor);
    });
  }

  template <class T>
  void decode_row(BitReader& from, const Draw& draw, Scratch& scratch, std::span<T> out) const {
    const Selection kept = received<T>(from, draw, scratch, out.size());
    expect<T>(from, std::uint64_t{kept.size} * kValueBits<T>, out.size());
    std::fill(out.begin(), out.end(), T(0));
    for (std::uint32_t j = 0; j < kept.size; ++j) out[kept[j]] = from.get_value<T>();
  }

  /// The places of a message, or an Error.
  template <class T>
  Selection received(BitReader& from, const Draw& draw, Scratch& scratch, std::size_t size) const {
    const std::optional<Selection> kept =
        read_places(from, static_cast<std::uint32_t>(size), draw, scratch);
    if (!kept) refuse<T>(size, "has impossible indices");
    return *kept;
  }
};

/// Which entries workers 0, ..., n - 1 send, known before their vectors are.
struct Choice {
  std::vector<std::int64_t> starts;   ///< (n + 1,): worker i has starts[i] to starts[i + 1] - 1
  std::vector<std::int64_t> indices;  ///< ascending for each worker

  /// Of a selector that is blind, fits d and is for n workers.
  static Choice of(const Selector& selector, std::uint32_t d, std::uint32_t n,
                   const RandomKey& key) {
    Choice result{{0}, {}};
    Scratch scratch;
    for (std::uint32_t worker = 0; worker < n; ++worker) {
      const Selection kept =
          selector.select(std::span<const double>(), d, Draw{key, worker}, scratch);
      for (std::uint32_t j = 0; j < kept.size; ++j) result.indices.push_back(kept[j]);
      result.starts.push_back(static_cast<std::int64_t>(result.indices.size()));
    }
    return result;
  }
};

/// Refuses a selector by which n workers cannot choose from d entries before these exist.
inline void check_choice(const Selector& selector, std::uint32_t d, std::size_t n,
                         const char* where) {
  if (!selector.is_blind()) raise(ErrorKind::value, "%s: it chooses by the vector", where);
  selector.check(d);
  check_workers(selector, n, where);
}

template <class Rule>
class SelectorOf final : public Selector {
 public:
  explicit SelectorOf(const Rule& rule) : rule_(rule) {}

  const char* name() const noexcept override { return Rule::kName; }
  void check(std::uint32_t d) const override { rule_.check(d); }
  std::uint32_t n_workers() const noexcept override {
    if constexpr (requires { rule_.n_workers; }) return rule_.n_workers;
    return 0;
  }
  std::uint32_t kept(std::uint32_t d) const override { return rule_.kept(d); }
  double scale(std::uint32_t d) const override { return rule_.scale(d); }
  Selection select(std::span<const float> x, std::uint32_t d, const Draw& draw,
                   Scratch& scratch) const override {
    return rule_.select(x, d, draw, scratch);
  }
  Selection select(std::span<const double> x, std::uint32_t d, const Draw& draw,
                   Scratch& scratch) const override {
    return rule_.select(x, d, draw, scratch);
  }
  std::int64_t place_bits(std::uint32_t n_kept, std::uint32_t d) const override {
    return rule_.place_bits(n_kept, d);
  }
  void write_places(const Selection& kept, std::uint32_t d, BitWriter& to) const override {
    rule_.write_places(kept, d, to);
  }
  std::optional<Selection> read_places(BitReader& from, std::uint32_t d, const Draw& draw,
                                       Scratch& scratch) const override {
    return rule_.read_places(from, d, draw, scratch);
  }
  bool is_blind() const noexcept override { return Rule::kBlind; }

 private:
  Rule rule_;
};

}  // namespace buropt
