// TernGrad (Wen et al., arXiv:1705.07878): random dithering with the largest magnitude for a norm
// and one level. omega = (sqrt(d) - 1) / 2.
#pragma once

#include "compress/random_dithering.h"

namespace buropt {

struct TernGrad : RandomDithering {
  static constexpr const char* kName = "TernGrad";

  TernGrad() noexcept : RandomDithering{{1, Norm::inf}} {}
};

}  // namespace buropt
