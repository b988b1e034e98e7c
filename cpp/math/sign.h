// sign.
#pragma once

#include "base/simd.h"

namespace buropt {

// -1, 0 or 1; the sign of a zero is dropped, a NaN stays.
template <Real T>
BUROPT_INLINE T sign(T x) noexcept {
  const T nonzero = select(x > T(0), T(1), T(-1));
  return select(x == T(0), T(0), select(isnan(x), x, nonzero));
}

}  // namespace buropt
