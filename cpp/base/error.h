// Errors: user mistakes become Error (translated to a Python exception at the binding); our own
// bugs are caught by BUROPT_ASSERT, which is on in debug and CI builds.
#pragma once

#include <stdexcept>
#include <string>

namespace buropt {

/// Which Python exception an Error becomes.
enum class ErrorKind { value, type, index };

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

/// Throws an Error with a printf-style text (GCC 12 has no std::format).
[[noreturn]] __attribute__((format(printf, 2, 3))) void raise(ErrorKind kind, const char* format,
                                                              ...);

[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

}  // namespace buropt

#ifdef BUROPT_CHECKED
#define BUROPT_ASSERT(condition) \
  ((condition) ? void(0) : ::buropt::assertion_failed(#condition, __FILE__, __LINE__))
#else
#define BUROPT_ASSERT(condition) void(0)
#endif
