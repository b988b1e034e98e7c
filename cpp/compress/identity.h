// Identity: every entry as it is. omega = 0, alpha = 1, d b bits.
#pragma once

#include "compress/compressor.h"

namespace buropt {

struct Identity {
  static constexpr const char* kName = "Identity";

  std::uint32_t kept(std::uint32_t d) const noexcept { return d; }
  bool sends_indices() const noexcept { return false; }
  double scale(std::uint32_t) const noexcept { return 1; }

  template <class T>
  Indices select(std::span<const T>, std::uint32_t d, const RandomKey&, std::uint32_t,
                 Scratch<T>& scratch) const {
    return select_all(d, scratch);
  }
};

static_assert(Compressor<Identity>);

}  // namespace buropt
