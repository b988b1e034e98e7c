// Numbers too small for the normal format, which processors handle a hundred times slower.
#pragma once

#include <cstdint>

namespace buropt {

/// While it lives, this thread takes subnormal numbers as 0 and gives 0 for them, where the
/// processor can be told to. Gradients of saturated networks are full of them.
class SubnormalsAreZero {
 public:
  SubnormalsAreZero() noexcept : saved_(read()) { write(saved_ | kFlush); }
  ~SubnormalsAreZero() { write(saved_); }
  SubnormalsAreZero(const SubnormalsAreZero&) = delete;
  SubnormalsAreZero& operator=(const SubnormalsAreZero&) = delete;

 private:
  // The memory clobbers keep what is computed in between from moving out.
#if defined(__x86_64__)
  using Word = std::uint32_t;
  static constexpr Word kFlush = 0x8040;  // flush to zero, denormals are zero
  static Word read() noexcept {
    Word word;
    asm volatile("stmxcsr %0" : "=m"(word) : : "memory");
    return word;
  }
  static void write(Word word) noexcept { asm volatile("ldmxcsr %0" : : "m"(word) : "memory"); }
#elif defined(__aarch64__)
  using Word = std::uint64_t;
  static constexpr Word kFlush = Word{1} << 24;
  static Word read() noexcept {
    Word word;
    asm volatile("mrs %0, fpcr" : "=r"(word) : : "memory");
    return word;
  }
  static void write(Word word) noexcept { asm volatile("msr fpcr, %0" : : "r"(word) : "memory"); }
#else
  using Word = std::uint32_t;
  static constexpr Word kFlush = 0;
  static Word read() noexcept { return 0; }
  static void write(Word) noexcept {}
#endif

  Word saved_;
};

}  // namespace buropt
