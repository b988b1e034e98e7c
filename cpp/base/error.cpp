#include "base/error.h"

#include <cstdarg>
#include <cstdio>

namespace buropt {

void raise(ErrorKind kind, const char* format, ...) {
  std::va_list arguments;
  va_start(arguments, format);
  std::va_list again;
  va_copy(again, arguments);
  const int length = std::vsnprintf(nullptr, 0, format, arguments);
  va_end(arguments);
  std::string text(length > 0 ? static_cast<std::size_t>(length) : 0, '\0');
  std::vsnprintf(text.data(), text.size() + 1, format, again);
  va_end(again);
  throw Error(kind, text);
}

void assertion_failed(const char* condition, const char* file, int line) {
  throw std::logic_error("buropt internal error, please report it: " + std::string(condition) +
                         " is false at " + file + ":" + std::to_string(line));
}

}  // namespace buropt
