// One pass over the bytes: parse_libsvm walks the lines, LineParser one line. The fast path looks
// at each byte once; the text of a token is only assembled when an error has to quote it.

#include "data/libsvm.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <system_error>

#include "base/error.h"

namespace buropt {
namespace {

// Columns are 32-bit; the count of features must fit as well, since it is the bound of a column.
constexpr std::int64_t kMaxFeatures = std::numeric_limits<std::int32_t>::max();

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// `token` for a message: control and non-ASCII bytes escaped, long ones shortened.
std::string printable(std::string_view token) {
  constexpr std::size_t kLongest = 40;
  std::string text;
  for (char c : token.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      char escaped[5];
      std::snprintf(escaped, sizeof escaped, "\\x%02x", static_cast<unsigned>(byte));
      text += escaped;
    }
  }
  return token.size() > kLongest ? text + "..." : text;
}

/// Whether a decimal number that std::from_chars found out of range is too small, not too large:
/// from_chars does not say which. Compares the decimal exponent of the leading digit with zero.
bool underflows(std::string_view number) {
  std::int64_t order = 0;  // decimal exponent of the first non-zero digit
  std::int64_t step = 0;   // what a further digit adds to it: 1 before the point, -1 after it
  bool leading = true;
  std::size_t i = 0;
  for (; i < number.size() && number[i] != 'e' && number[i] != 'E'; ++i) {
    if (number[i] == '.') {
      if (!leading) break;
      step = -1;
    } else if (is_digit(number[i])) {
      if (leading && number[i] == '0') {
        order += step;
      } else if (leading) {
        leading = false;
        order += step;
        if (step < 0) break;
      } else {
        ++order;
      }
    }
  }
  i = number.find_first_of("eE", i);
  if (i == std::string_view::npos) return order < 0;
  ++i;
  if (i < number.size() && number[i] == '+') ++i;
  std::int64_t exponent = 0;
  const auto [_, error] =
      std::from_chars(number.data() + i, number.data() + number.size(), exponent);
  if (error == std::errc::result_out_of_range) return number[i] == '-';
  return order + exponent < 0;
}

enum class NumberStatus { good, malformed, not_finite, too_large };

struct Number {
  const char* end;  // first byte after it
  NumberStatus status;
};

/// Reads a decimal number at `first`; one leading '+' is allowed, unlike in std::from_chars.
template <class T>
Number read_number(const char* first, const char* last, T& value) {
  const char* start = first;
  if (start != last && *start == '+') {
    ++start;
    if (start != last && *start == '-') return {start, NumberStatus::malformed};
  }
  const auto [end, error] = std::from_chars(start, last, value);
  if (error == std::errc::invalid_argument) return {start, NumberStatus::malformed};
  if (error == std::errc::result_out_of_range) {
    if (!underflows({start, static_cast<std::size_t>(end - start)}))
      return {end, NumberStatus::too_large};
    value = *start == '-' ? T(-0.0) : T(0);
  }
  return {end, std::isfinite(value) ? NumberStatus::good : NumberStatus::not_finite};
}

/// Parses the lines of one text into `data`.
template <class T>
class LineParser {
 public:
  LineParser(const std::string& name, const LibsvmOptions& options, LibsvmData<T>& data)
      : name_(name), options_(options), data_(data) {
    limit_ = options.n_features >= 0 ? options.n_features : kMaxFeatures;
  }

  /// `complete`: the line ends in a newline, rather than where the file ends.
  void parse(const char* first, const char* last, std::int64_t line, bool complete) {
    line_ = line;
    complete_ = complete;
    const char* comment =
        static_cast<const char*>(std::memchr(first, '#', static_cast<std::size_t>(last - first)));
    last_ = comment != nullptr ? comment : last;
    const char* at = skip_blanks(first);
    if (at == last_) return;
    at = skip_blanks(label(at));
    at = query(at);
    std::int64_t previous = -1;
    while (at != last_) at = skip_blanks(feature(at, previous));
    data_.row_starts.push_back(static_cast<std::int64_t>(data_.columns.size()));
  }

 private:
  const char* skip_blanks(const char* at) const {
    while (at != last_ && is_blank(*at)) ++at;
    return at;
  }

  bool ends_at(const char* at) const { return at == last_ || is_blank(*at); }

  std::string_view token(const char* at) const {
    const char* end = std::find_if(at, last_, is_blank);
    return {at, static_cast<std::size_t>(end - at)};
  }

  [[noreturn]] void fail(const std::string& what) const {
    raise(ErrorKind::value, "%s, line %lld: %s%s", name_.c_str(), static_cast<long long>(line_),
          what.c_str(),
          complete_ ? "" : " (the file ends in this line without a newline: is it cut off?)");
  }

  const char* label(const char* at) {
    double value = 0;
    const Number number = read_number(at, last_, value);
    if (number.status != NumberStatus::good || !ends_at(number.end)) bad_label(at, number.status);
    data_.labels.push_back(value);
    return number.end;
  }

  [[noreturn]] void bad_label(const char* at, NumberStatus status) const {
    const std::string_view word = token(at);
    const std::string quoted = "'" + printable(word) + "'";
    if (word.find(':') != word.npos)
      fail("the line starts with " + quoted +
           ", not with a label; write the label first, as in '+1 " + printable(word) + "'");
    if (word.find(',') != word.npos)
      fail("label " + quoted +
           " lists several classes; multi-label data are not supported, write " +
           "one label a line");
    if (status == NumberStatus::not_finite || status == NumberStatus::too_large)
      fail("label " + quoted +
           " is not a finite number; write a class or a target such as -1 or 2.5");
    fail("label " + quoted + " is not a number; write 'label index:value index:value ...'");
  }

  /// The optional qid field. An integer of 64 bits: never read through a floating-point number.
  const char* query(const char* at) {
    static constexpr std::string_view kPrefix = "qid:";
    const bool present =
        std::string_view(at, static_cast<std::size_t>(last_ - at)).starts_with(kPrefix);
    if (!present) {
      if (options_.query_id)
        fail("no qid field follows the label; write 'label qid:1 ...', or pass query_id=False");
      return at;
    }
    const std::string_view word = token(at);
    if (options_.query_id) {
      std::int64_t id = 0;
      const char* end = word.data() + word.size();
      const auto [stop, error] = std::from_chars(at + kPrefix.size(), end, id);
      if (error == std::errc::result_out_of_range)
        fail("'" + printable(word) + "' does not fit a 64-bit integer; number the queries anew");
      if (error != std::errc() || stop != end)
        fail("'" + printable(word) + "' is not an integer query id; write 'qid:1'");
      data_.query_ids.push_back(id);
    }
    return skip_blanks(at + word.size());
  }

  const char* feature(const char* at, std::int64_t& previous) {
    const char* p = at;
    std::int64_t index = 0;
    for (; p != last_ && is_digit(*p) && index <= kMaxFeatures; ++p)
      index = index * 10 + (*p - '0');
    if (p == at || p == last_ || *p != ':') bad_index(at);
    const std::int64_t column = options_.zero_based ? index : index - 1;
    if (column <= previous || column >= limit_) bad_column(at, index, previous);

    T value = 0;
    const Number number = read_number(p + 1, last_, value);
    if (number.status != NumberStatus::good || !ends_at(number.end))
      bad_value(at, p + 1, number.status);

    previous = column;
    data_.columns.push_back(static_cast<std::int32_t>(column));
    data_.values.push_back(value);
    data_.n_features = std::max(data_.n_features, column + 1);
    return number.end;
  }

  [[noreturn]] void bad_index(const char* at) const {
    const std::string_view word = token(at);
    const std::string quoted = "'" + printable(word) + "'";
    const std::size_t colon = word.find(':');
    if (colon == word.npos) fail(quoted + " has no colon; write index:value, as in '3:0.5'");
    const std::string_view index = word.substr(0, colon);
    if (index == "qid")
      fail(quoted + " must follow the label; write 'label qid:1 index:value ...'");
    if (!index.empty() && std::all_of(index.begin(), index.end(), is_digit))
      fail("index " + printable(index) + " in " + quoted + " is too large; the largest index is " +
           std::to_string(options_.zero_based ? kMaxFeatures - 1 : kMaxFeatures));
    fail("index '" + printable(index) + "' in " + quoted + " is not a whole number; write " +
         "index:value, as in '3:0.5'");
  }

  /// The index is a whole number, but not one that may stand here.
  [[noreturn]] void bad_column(const char* at, std::int64_t index, std::int64_t previous) const {
    const std::string here =
        "index " + std::to_string(index) + " in '" + printable(token(at)) + "'";
    if (index == 0 && !options_.zero_based)
      fail(here + ", but indices count from 1; pass zero_based=True if this file counts from 0");
    const std::int64_t column = options_.zero_based ? index : index - 1;
    if (column == previous) fail(here + " comes twice in the line; keep one of the two");
    if (column < previous)
      fail(here + " follows index " + std::to_string(previous + (index - column)) +
           "; write the indices of a line in increasing order");
    if (options_.n_features < 0)
      fail(here + " is too large; the largest index is " +
           std::to_string(limit_ + index - column - 1));
    fail(here + " lies beyond n_features=" + std::to_string(options_.n_features) +
         "; pass n_features=" + std::to_string(column + 1) + " or more");
  }

  [[noreturn]] void bad_value(const char* at, const char* start, NumberStatus status) const {
    const std::string_view word = token(at);
    const std::string_view text = word.substr(static_cast<std::size_t>(start - at));
    const std::string quoted = "'" + printable(word) + "'";
    if (text.empty())
      fail(quoted + " has no value; write index:value without blanks, as in '3:0.5'");
    const std::string value = "value '" + printable(text) + "' in " + quoted;
    if (text.find(':') != text.npos)
      fail(value + " is not a number; is a blank missing between two features?");
    if (status == NumberStatus::not_finite)
      fail(value + " is not finite; leave the feature out or write a number");
    if (status == NumberStatus::too_large)
      fail(
          value + " is too large for " +
          (sizeof(T) == sizeof(float) ? "float32; pass dtype=\"float64\"" : "float64; rescale it"));
    fail(value + " is not a number; write index:value, as in '3:0.5'");
  }

  const std::string& name_;
  const LibsvmOptions& options_;
  LibsvmData<T>& data_;
  std::int64_t limit_ = 0;  // columns must be smaller
  std::int64_t line_ = 0;
  bool complete_ = true;
  const char* last_ = nullptr;  // end of the line without its comment
};

}  // namespace

template <class T>
LibsvmData<T> parse_libsvm(std::string_view text, const std::string& name,
                           const LibsvmOptions& options) {
  static constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());

  // Every entry has a colon, so this reserves enough (a little more with comments) in one go.
  LibsvmData<T> data;
  const auto n_colons = static_cast<std::size_t>(std::count(text.begin(), text.end(), ':'));
  data.columns.reserve(n_colons);
  data.values.reserve(n_colons);
  data.row_starts.push_back(0);

  LineParser<T> parser(name, options, data);
  const char* at = text.data();
  const char* const end = at + text.size();
  for (std::int64_t line = 1; at != end; ++line) {
    const auto* newline =
        static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    parser.parse(at, newline != nullptr ? newline : end, line, newline != nullptr);
    at = newline != nullptr ? newline + 1 : end;
  }

  if (data.labels.empty())
    raise(ErrorKind::value, "%s holds no samples: it is empty, or has only blank and comment lines",
          name.c_str());
  if (options.n_features >= 0) data.n_features = options.n_features;
  return data;
}

template LibsvmData<float> parse_libsvm(std::string_view, const std::string&, const LibsvmOptions&);
template LibsvmData<double> parse_libsvm(std::string_view, const std::string&,
                                         const LibsvmOptions&);

}  // namespace buropt
