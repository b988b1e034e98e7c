// Products with sliced sparse matrices against a plain loop over the rows, by equality of bits:
// each lane sums a piece of a row in order. Vectors and matrices end where their memory ends: the
// sanitizers watch. A last column is infinite, and only the rows that have it may tell.
#include "math/sliced.h"

#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

using namespace buropt;

int check_sliced();

namespace {

/// Of either sign, with so few digits that products are exact: it does not matter whether the
/// compiler fuses them with sums, which do round.
template <class T>
T number(std::mt19937& random, int most) {
  const auto digits = static_cast<double>(random() % static_cast<unsigned>(2 * most + 1)) - most;
  return static_cast<T>(std::ldexp(digits, static_cast<int>(random() % 12)));
}

enum class Values { ones, counts, large_counts, real };

template <class T>
struct Csr {
  std::vector<T> values;
  std::vector<std::int32_t> columns;
  std::vector<std::int64_t> starts{0};
  std::int64_t width;
  bool has_values;

  /// n rows; some are empty, one is long, and few columns are common.
  Csr(std::mt19937& random, std::int64_t n, std::int64_t width, Values kind)
      : width(width), has_values(kind != Values::ones) {
    const auto long_row = static_cast<std::int64_t>(random()) % std::max<std::int64_t>(1, n);
    for (std::int64_t i = 0; i < n; ++i) {
      const double share = i == long_row       ? 0.9
                           : random() % 3 == 0 ? 0.0
                                               : 8.0 / static_cast<double>(width);
      for (std::int32_t j = 0; j < width; ++j) {
        if (static_cast<double>(random() % 1000000) >= 1e6 * share) continue;
        columns.push_back(j);
        if (kind == Values::real) values.push_back(number<T>(random, 4095));
        if (kind == Values::counts) values.push_back(static_cast<T>(random() % 65536));
        if (kind == Values::large_counts) values.push_back(static_cast<T>(65530 + random() % 9));
      }
      starts.push_back(static_cast<std::int64_t>(columns.size()));
    }
  }

  Csr(std::int64_t width, bool has_values) : width(width), has_values(has_values) {}

  Csr transposed() const {
    std::vector<std::vector<std::size_t>> entries(static_cast<std::size_t>(width));
    std::vector<std::int32_t> rows(columns.size());
    for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
      for (auto e = static_cast<std::size_t>(starts[i]);
           e < static_cast<std::size_t>(starts[i + 1]); ++e) {
        rows[e] = static_cast<std::int32_t>(i);
        entries[static_cast<std::size_t>(columns[e])].push_back(e);
      }
    }
    Csr result(static_cast<std::int64_t>(starts.size()) - 1, has_values);
    for (const auto& column : entries) {
      for (const std::size_t e : column) {
        result.columns.push_back(rows[e]);
        if (has_values) result.values.push_back(values[e]);
      }
      result.starts.push_back(static_cast<std::int64_t>(result.columns.size()));
    }
    return result;
  }

  CsrView<T> view() const {
    return {has_values ? values.data() : nullptr, columns.data(), starts.data(),
            static_cast<std::int64_t>(starts.size()) - 1, width};
  }
};

template <class T>
int wrong_products(const Csr<T>& csr, const SlicedMatrix<T>& sliced, std::mt19937& random) {
  const CsrView<T> a = csr.view();
  const std::int64_t n = a.n;
  const std::int64_t width = a.width;
  std::vector<T> x(static_cast<std::size_t>(width));
  for (T& one : x) one = number<T>(random, 127);
  if (width > 1) x.back() = std::numeric_limits<T>::infinity();
  constexpr std::int64_t kPiece = SlicedMatrix<T>::kPiece;
  std::vector<T> expected(static_cast<std::size_t>(n));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    for (std::int64_t begin = a.row_starts[i]; begin < a.row_starts[i + 1]; begin += kPiece) {
      T sum = 0;
      const std::int64_t end = std::min(begin + kPiece, a.row_starts[i + 1]);
      for (auto e = static_cast<std::size_t>(begin); e < static_cast<std::size_t>(end); ++e) {
        const T value = a.values == nullptr ? T(1) : a.values[e];
        sum += value * x[static_cast<std::size_t>(a.columns[e])];
      }
      expected[i] = begin == a.row_starts[i] ? sum : expected[i] + sum;
    }
  }
  int wrong = 0;
  for (const int threads : {1, 3}) {
    std::vector<T> z(static_cast<std::size_t>(n), T(-7));
    std::vector<T> scratch(static_cast<std::size_t>(sliced.n_cut_pieces()));
    sliced.times(x.data(), z.data(), scratch.data(), threads);
    wrong += n > 0 && std::memcmp(z.data(), expected.data(), z.size() * sizeof(T)) != 0;
  }
  return wrong;
}

/// By rows and by columns.
template <class T>
int wrong_copies(std::mt19937& random, std::int64_t n, std::int64_t width, Values kind) {
  const Csr<T> csr(random, n, width, kind);
  return wrong_products<T>(csr, {csr.view(), false}, random) +
         wrong_products<T>(csr.transposed(), {csr.view(), true}, random);
}

}  // namespace

int check_sliced() {
  std::mt19937 random(7);
  int wrong = 0;
  for (const Values kind : {Values::ones, Values::counts, Values::large_counts, Values::real}) {
    for (const std::int64_t n : {0, 1, 7, 8, 17, 300}) {
      for (const std::int64_t width : {1, 50, 1000}) {
        wrong += wrong_copies<float>(random, n, width, kind);
        wrong += wrong_copies<double>(random, n, width, kind);
      }
    }
    wrong += wrong_copies<float>(random, 5, 70000, kind);  // columns of more than 16 bits
    wrong += wrong_copies<double>(random, 5, 70000, kind);
  }
  return wrong;
}
