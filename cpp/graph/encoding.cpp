#include "graph/encoding.h"

#include <bit>
#include <limits>

#include "base/error.h"

namespace buropt {
namespace {

static_assert(std::endian::native == std::endian::little, "numbers are written as they lie");

enum Flag : std::uint8_t { kBatched = 1, kCsr = 2 };

bool is_utf8(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i++]);
    if (lead < 0x80) continue;
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4) return false;
    std::uint32_t code = lead & (0x3FU >> more);
    for (int k = 0; k < more; ++k, ++i) {
      if (i == text.size() || (static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) return false;
      code = (code << 6) | (static_cast<unsigned char>(text[i]) & 0x3FU);
    }
    const bool is_surrogate = code >= 0xD800 && code < 0xE000;
    if (is_surrogate || code > 0x10FFFF || (more == 2 && code < 0x800) ||
        (more == 3 && code < 0x10000)) {
      return false;
    }
  }
  return true;
}

}  // namespace

// ---- Writing -----------------------------------------------------------------------------------

void Encoder::number(std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) byte(static_cast<std::uint8_t>(value | 0x80));
  byte(static_cast<std::uint8_t>(value));
}

void Encoder::integer(std::int64_t value) {
  const auto bits = static_cast<std::uint64_t>(value);
  number((bits << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0));
}

void Encoder::string(std::string_view value) {
  count(value.size());
  text_.append(value);
}

void Encoder::type(const Type& type) {
  byte(static_cast<std::uint8_t>((type.batched ? kBatched : 0) | (type.csr ? kCsr : 0)));
  count(static_cast<std::size_t>(type.shape.rank()));
  for (const std::int64_t extent : type.shape) id(extent);
}

// ---- Reading -----------------------------------------------------------------------------------

void Decoder::fail(const std::string& what) const {
  raise(ErrorKind::value, "%s does not hold a valid graph: %s. Save it again.", name_.c_str(),
        what.c_str());
}

const std::byte* Decoder::raw(std::size_t bytes) {
  if (bytes > rest_.size()) fail("it ends too early");
  const std::byte* data = rest_.data();
  rest_ = rest_.subspan(bytes);
  return data;
}

std::uint64_t Decoder::number() {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(*raw(1));
    if (shift == 63 && byte > 1) break;
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
  fail("a number is longer than 64 bits");
}

std::uint64_t Decoder::below(std::uint64_t limit, const char* what) {
  const std::uint64_t value = number();
  if (value >= limit) {
    fail(std::string(what) + " " + std::to_string(value) + " is out of range");
  }
  return value;
}

std::size_t Decoder::count(std::size_t each) {
  const std::uint64_t value = number();
  if (value > rest_.size() / each) fail("it ends too early");
  return static_cast<std::size_t>(value);
}

std::int64_t Decoder::integer() {
  const std::uint64_t bits = number();
  return static_cast<std::int64_t>((bits >> 1) ^ ((bits & 1) != 0 ? ~std::uint64_t{0} : 0));
}

std::string Decoder::string() {
  const std::size_t bytes = count();
  std::string text(reinterpret_cast<const char*>(raw(bytes)), bytes);
  if (!is_utf8(text) || text.find('\0') != std::string::npos) fail("a name is not text");
  return text;
}

Type Decoder::type(DType dtype) {
  Type type;
  type.dtype = dtype;
  const std::uint64_t flags = below(2 * kCsr, "the flag of a type");
  type.batched = (flags & kBatched) != 0;
  type.csr = (flags & kCsr) != 0;
  for (std::uint64_t rank = below(kMaxRank + 1, "the rank"); rank > 0; --rank) {
    type.shape.push_back(
        static_cast<std::int64_t>(below(std::numeric_limits<std::int64_t>::max(), "an extent")));
  }
  if (!type.shape.is_sane()) fail("the shape " + type.shape.str() + " is too large");
  return type;
}

}  // namespace buropt
