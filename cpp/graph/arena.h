// Arena: hands out offsets for buffers whose lifetimes are known, first fit, cache-line aligned.
#pragma once

#include <cstdint>
#include <map>

#include "base/buffer.h"

namespace buropt {

class Arena {
 public:
  std::int64_t take(std::int64_t bytes) {
    const std::int64_t size = rounded(bytes);
    for (auto it = free_.begin(); it != free_.end(); ++it) {
      if (it->second < size) continue;
      const std::int64_t offset = it->first;
      const std::int64_t rest = it->second - size;
      free_.erase(it);
      if (rest > 0) free_.emplace(offset + size, rest);
      return offset;
    }
    const std::int64_t offset = end_;
    end_ += size;
    return offset;
  }

  void give_back(std::int64_t offset, std::int64_t bytes) {
    auto it = free_.emplace(offset, rounded(bytes)).first;
    if (const auto next = std::next(it);
        next != free_.end() && it->first + it->second == next->first) {
      it->second += next->second;
      free_.erase(next);
    }
    if (it == free_.begin()) return;
    if (const auto previous = std::prev(it); previous->first + previous->second == it->first) {
      previous->second += it->second;
      free_.erase(it);
    }
  }

  std::int64_t size() const { return end_; }

 private:
  static std::int64_t rounded(std::int64_t bytes) {
    return static_cast<std::int64_t>(round_up(static_cast<std::size_t>(bytes > 0 ? bytes : 1)));
  }

  std::map<std::int64_t, std::int64_t> free_;
  std::int64_t end_ = 0;
};

}  // namespace buropt
