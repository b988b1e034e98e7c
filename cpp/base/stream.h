// Stores that go past the caches: memory that is written whole need not be read first.
//
// Neither compilers' vector extension has them, so here are the builtins of each.
#pragma once

#include "base/simd.h"

namespace buropt {

/// p begins a register's worth of memory; finish_streams() before anybody else may read it.
template <class T>
BUROPT_INLINE void stream(Pack<T> x, T* p) noexcept {
#if defined(__clang__)
  __builtin_nontemporal_store(x.v, reinterpret_cast<typename Pack<T>::Vector*>(p));
#elif defined(__x86_64__)
  const auto bits = __builtin_bit_cast(Pack<double>::Vector, x.v);
#if BUROPT_VECTOR_BYTES == 64
  __builtin_ia32_movntpd512(reinterpret_cast<double*>(p), bits);
#elif BUROPT_VECTOR_BYTES == 32
  __builtin_ia32_movntpd256(reinterpret_cast<double*>(p), bits);
#else
  __builtin_ia32_movntpd(reinterpret_cast<double*>(p), bits);
#endif
#else
  x.store(p);
#endif
}

/// What stream() has stored comes before whatever this thread stores later.
BUROPT_INLINE void finish_streams() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_sfence();
#endif
}

}  // namespace buropt
