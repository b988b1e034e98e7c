// A core that was built for one machine would end on a lesser one by a signal that says nothing,
// SIGILL: so it goes where a cluster's nodes share a home folder, and pip its cache of wheels.
//
// Here may stand only what needs no instruction beyond the oldest ones: no std::string, and none of
// the core's own functions.
#include "bind/cpu.h"

#include <stdexcept>

#ifdef __x86_64__
#include <cpuid.h>
#endif

namespace buropt {

#ifdef __x86_64__

namespace {

/// Which compilers cannot ask for by name.
bool has_avx512fp16() {
  unsigned a, b, c, d;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && ((d >> 23) & 1) != 0;
}

}  // namespace

#define BUROPT_TEXT(x) #x
/// macro: the compiler's, which is 1 where it uses the instructions, and otherwise undefined.
#define BUROPT_NEED_THAT(is_there, macro, name)                                       \
  if (BUROPT_TEXT(macro)[0] == '1' && !(is_there))                                    \
  throw std::runtime_error("it was built for a CPU with " name                        \
                           ", and this one has no such instructions; build it here, " \
                           "or with BUROPT_ARCH=x86-64-v2 for both")
#define BUROPT_NEED(macro, name) BUROPT_NEED_THAT(__builtin_cpu_supports(name), macro, name)

void check_cpu() {
  BUROPT_NEED(__AVX512F__, "avx512f");
  BUROPT_NEED(__AVX512CD__, "avx512cd");
  BUROPT_NEED(__AVX512BW__, "avx512bw");
  BUROPT_NEED(__AVX512DQ__, "avx512dq");
  BUROPT_NEED(__AVX512VL__, "avx512vl");
  BUROPT_NEED(__AVX512IFMA__, "avx512ifma");
  BUROPT_NEED(__AVX512VBMI__, "avx512vbmi");
  BUROPT_NEED(__AVX512VBMI2__, "avx512vbmi2");
  BUROPT_NEED(__AVX512VNNI__, "avx512vnni");
  BUROPT_NEED(__AVX512BITALG__, "avx512bitalg");
  BUROPT_NEED(__AVX512VPOPCNTDQ__, "avx512vpopcntdq");
  BUROPT_NEED_THAT(has_avx512fp16(), __AVX512FP16__, "avx512fp16");
  BUROPT_NEED(__AVX2__, "avx2");
  BUROPT_NEED(__FMA__, "fma");
  BUROPT_NEED(__BMI2__, "bmi2");
  BUROPT_NEED(__BMI__, "bmi");
  BUROPT_NEED(__AVX__, "avx");
  BUROPT_NEED(__POPCNT__, "popcnt");
  BUROPT_NEED(__SSE4_2__, "sse4.2");
  BUROPT_NEED(__SSE4_1__, "sse4.1");
  BUROPT_NEED(__SSSE3__, "ssse3");
  BUROPT_NEED(__SSE3__, "sse3");
}

#else

void check_cpu() {}

#endif

}  // namespace buropt
