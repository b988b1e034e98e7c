// CRC-32 as zlib, gzip and PNG compute it (polynomial 0xEDB88320), eight bytes at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace buropt {
namespace detail {

/// tables[k][b]: what byte b becomes when k more bytes have followed it.
constexpr std::array<std::array<std::uint32_t, 256>, 8> crc_tables() {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t c = b;
    for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) != 0 ? 0xEDB88320U : 0U);
    tables[0][b] = c;
  }
  for (std::size_t k = 1; k < tables.size(); ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t c = tables[k - 1][b];
      tables[k][b] = (c >> 8) ^ tables[0][c & 0xFF];
    }
  }
  return tables;
}

}  // namespace detail

inline std::uint32_t crc32(std::span<const std::byte> bytes) noexcept {
  static constexpr auto tables = detail::crc_tables();
  std::uint32_t crc = ~std::uint32_t{0};
  std::size_t i = 0;
  for (; i + 8 <= bytes.size(); i += 8) {
    std::uint32_t next = 0;
    for (std::size_t k = 0; k < 8; ++k) {
      const auto byte = std::to_integer<std::uint32_t>(bytes[i + k]);
      next ^= tables[7 - k][(k < 4 ? byte ^ (crc >> (8 * k)) : byte) & 0xFF];
    }
    crc = next;
  }
  for (; i < bytes.size(); ++i) {
    crc = (crc >> 8) ^ tables[0][(crc ^ std::to_integer<std::uint32_t>(bytes[i])) & 0xFF];
  }
  return ~crc;
}

}  // namespace buropt
