// Compressors made of compressors.
//
// Composition: the entries that the first one keeps, as the second one sends them. A message is the
// places, then the message of the second one.
// Scaled: the message of another compressor, which the receiver multiplies by a factor.
#pragma once

#include "compress/selector.h"

namespace buropt {

class Composition final : public ForFloats<Composition> {
 public:
  Composition(std::shared_ptr<const Selector> first, std::shared_ptr<const Compressor> second)
      : first_(std::move(first)), second_(std::move(second)) {}

  const char* name() const noexcept override { return "Composition"; }
  void check(std::uint32_t d) const override {
    first_->check(d);
    second_->check(first_->kept(d));
  }
  std::uint32_t n_workers() const noexcept override { return first_->n_workers(); }

  template <class T>
  std::int64_t compress_row(std::span<const T> x, const Draw& draw, Scratch& scratch,
                            std::span<T> out) const {
    const auto d = static_cast<std::uint32_t>(x.size());
    const Selection kept = first_->select(x, d, draw, scratch);
    std::memset(out.data(), 0, out.size_bytes());
    std::int64_t bits = first_->place_bits(kept.size, d);
    if (kept.size == 0) return bits;
    const std::span<const T> values = gather(x, kept, scratch);
    const std::span<T> sent(reserve(scratch.inner().values<T>(), kept.size), kept.size);
    bits += second_->compress(values, draw.next_stage(), scratch.inner().inner(), sent);
    for (std::uint32_t j = 0; j < kept.size; ++j) out[kept[j]] = sent[j];
    return bits;
  }

  template <class T>
  void encode_row(std::span<const T> x, const Draw& draw, Scratch& scratch, BitWriter& to) const {
    const auto d = static_cast<std::uint32_t>(x.size());
    const Selection kept = first_->select(x, d, draw, scratch);
    first_->write_places(kept, d, to);
    if (kept.size == 0) return;
    second_->encode(gather(x, kept, scratch), draw.next_stage(), scratch.inner().inner(), to);
  }

  template <class T>
  void decode_row(BitReader& from, const Draw& draw, Scratch& scratch, std::span<T> out) const {
    const Selection kept = first_->received<T>(from, draw, scratch, out.size());
    std::fill(out.begin(), out.end(), T(0));
    if (kept.size == 0) return;
    const std::span<T> sent(reserve(scratch.values<T>(), kept.size), kept.size);
    second_->decode(from, draw.next_stage(), scratch.inner(), sent);
    for (std::uint32_t j = 0; j < kept.size; ++j) out[kept[j]] = sent[j];
  }

 private:
  /// The kept entries side by side, scaled as the first compressor scales them.
  template <class T>
  std::span<const T> gather(std::span<const T> x, const Selection& kept, Scratch& scratch) const {
    const double factor = first_->scale(static_cast<std::uint32_t>(x.size()));
    T* values = reserve(scratch.values<T>(), kept.size);
    for (std::uint32_t j = 0; j < kept.size; ++j) values[j] = scaled(x[kept[j]], factor);
    return {values, kept.size};
  }

  std::shared_ptr<const Selector> first_;
  std::shared_ptr<const Compressor> second_;
};

class Scaled final : public ForFloats<Scaled> {
 public:
  Scaled(std::shared_ptr<const Compressor> compressor, double factor)
      : compressor_(std::move(compressor)), factor_(factor) {}

  const char* name() const noexcept override { return "Scaled"; }
  void check(std::uint32_t d) const override { compressor_->check(d); }
  std::uint32_t n_workers() const noexcept override { return compressor_->n_workers(); }

  template <class T>
  std::int64_t compress_row(std::span<const T> x, const Draw& draw, Scratch& scratch,
                            std::span<T> out) const {
    const std::int64_t bits = compressor_->compress(x, draw, scratch, out);
    multiply(out);
    return bits;
  }

  template <class T>
  void encode_row(std::span<const T> x, const Draw& draw, Scratch& scratch, BitWriter& to) const {
    compressor_->encode(x, draw, scratch, to);
  }

  template <class T>
  void decode_row(BitReader& from, const Draw& draw, Scratch& scratch, std::span<T> out) const {
    compressor_->decode(from, draw, scratch, out);
    multiply(out);
  }

 private:
  template <class T>
  void multiply(std::span<T> out) const noexcept {
    for (T& entry : out) entry = scaled(entry, factor_);
  }

  std::shared_ptr<const Compressor> compressor_;
  double factor_;
};

}  // namespace buropt
