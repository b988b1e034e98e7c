// Damaged LIBSVM files for the sanitizers (scripts/sanitize): rows that hold together, or an error
// that names the file.
#include <algorithm>
#include <cstring>
#include <random>

#include "base/error.h"
#include "data/libsvm.h"

using namespace buropt;

int fuzz_libsvm();

namespace {

constexpr std::string_view kGood =
    "+1 1:0.5 3:-2e-3 7:1 # a comment\n"
    "-1 2:1e300 40:0.125\r\n"
    "\n"
    "0.5 1:.25 2:1. 2147483646:3\n"
    "2 qid:7 5:nan\n"
    "1\n";

template <class T>
bool is_sound(const LibsvmData<T>& data) {
  const auto nonzeros = static_cast<std::int64_t>(data.columns.size());
  const auto in_range = [&](std::int32_t column) {
    return 0 <= column && column < data.n_features;
  };
  return data.row_starts.size() == data.labels.size() + 1 && data.row_starts.front() == 0 &&
         data.row_starts.back() == nonzeros && data.values.size() == data.columns.size() &&
         std::is_sorted(data.row_starts.begin(), data.row_starts.end()) &&
         std::all_of(data.columns.begin(), data.columns.end(), in_range);
}

template <class T>
int wrong(std::string_view text, const LibsvmOptions& options) {
  try {
    return !is_sound(parse_libsvm<T>(text, "the file", options));
  } catch (const Error& error) {
    return std::strstr(error.what(), "the file") == nullptr;
  }
}

}  // namespace

int fuzz_libsvm() {
  constexpr std::string_view kBytes("0123456789:.+-eE#qid \t\r\n\0\xff", 26);
  std::mt19937 random(1);
  int failures = 0;
  for (int trial = 0; trial < 5000; ++trial) {
    std::string text(kGood.substr(0, random() % (kGood.size() + 1)));
    for (auto changes = random() % 4; changes > 0 && !text.empty(); --changes) {
      text[random() % text.size()] = kBytes[random() % kBytes.size()];
    }
    // Memory that ends where the text does.
    const std::vector<char> exact(text.begin(), text.end());
    const std::string_view view(exact.data(), exact.size());
    LibsvmOptions options;
    options.zero_based = random() % 2 == 0;
    options.query_id = random() % 4 == 0;
    if (random() % 4 == 0) options.n_features = static_cast<std::int64_t>(random() % 50);
    failures += wrong<float>(view, options) + wrong<double>(view, options);
  }
  return failures;
}
