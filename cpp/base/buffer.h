// Aligned memory with one owner, for arenas and constants.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

namespace buropt {

/// Every buffer of an arena starts on a cache line, so that packs never straddle two.
inline constexpr std::size_t kAlignment = 64;

constexpr std::size_t round_up(std::size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

/// Zero-initialized bytes on a cache-line boundary. Move-only.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t bytes) : size_(round_up(bytes)) {
    if (size_ == 0) return;
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, size_)));
    if (!data_) throw std::bad_alloc();
    std::memset(data_.get(), 0, size_);
  }
  Buffer(Buffer&& other) noexcept
      : data_(std::move(other.data_)), size_(std::exchange(other.size_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  std::byte* data() noexcept { return data_.get(); }
  const std::byte* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }

  /// Grows to at least the given size; contents are lost when it grows.
  void reserve(std::size_t bytes) {
    if (bytes > size_) *this = Buffer(bytes);
  }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace buropt
