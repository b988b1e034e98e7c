// How numbers, names and types stand in the bytes of a graph (serialize.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ops/type.h"

namespace buropt {

/// Appends to a text of bytes.
class Encoder {
 public:
  void byte(std::uint8_t value) { text_.push_back(static_cast<char>(value)); }
  void number(std::uint64_t value);
  void count(std::size_t value) { number(value); }
  void id(std::int64_t value) { number(static_cast<std::uint64_t>(value)); }
  void integer(std::int64_t value);
  void string(std::string_view value);
  void type(const Type& type);
  template <class T>
  void fixed(T value) {
    raw(&value, sizeof(value));
  }
  void raw(const void* data, std::size_t bytes) {
    text_.append(static_cast<const char*>(data), bytes);
  }

  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

/// Takes from the front of bytes that may be anything. `name` stands for them in the one error by
/// which reading ends.
class Decoder {
 public:
  Decoder(std::span<const std::byte> bytes, const std::string& name) : rest_(bytes), name_(name) {}

  [[noreturn]] void fail(const std::string& what) const;
  std::size_t remaining() const { return rest_.size(); }

  const std::byte* raw(std::size_t bytes);
  std::uint64_t number();
  /// A number below the limit.
  std::uint64_t below(std::uint64_t limit, const char* what);
  /// How many things follow, of at least `each` bytes.
  std::size_t count(std::size_t each = 1);
  std::int64_t integer();
  std::string string();
  Type type(DType dtype);

 private:
  std::span<const std::byte> rest_;
  const std::string& name_;
};

}  // namespace buropt
