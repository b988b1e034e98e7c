// The matrix product against three plain loops: small integers, so every order of summation gives
// the same number and results are compared by equality; and real numbers, whose bits may not depend
// on how the rows of A are cut. Every matrix ends where its memory ends: the sanitizers watch.
#include "math/gemm.h"

#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "math/transpose.h"

using namespace buropt;

int check_gemm();

namespace {

std::int64_t pick(std::mt19937& random, std::initializer_list<std::int64_t> choices) {
  return choices.begin()[random() % choices.size()];
}

/// Rows of `columns` numbers, `stride` apart, in memory of their own.
template <class T>
struct Matrix {
  std::int64_t rows, columns, stride;
  std::vector<T> memory;

  Matrix(std::int64_t rows, std::int64_t columns, std::int64_t gap)
      : rows(rows), columns(columns), stride(columns + gap) {
    if (rows > 0) memory.resize(static_cast<std::size_t>((rows - 1) * stride + columns));
  }
  T& operator()(std::int64_t i, std::int64_t j) {
    return memory[static_cast<std::size_t>(i * stride + j)];
  }
  void fill_with(auto&& number) {
    for (T& x : memory) x = static_cast<T>(number());
  }
};

template <class T>
struct Problem {
  Gemm<T> g;
  Matrix<T> a, b, c, init, bias, residual, mask;
  bool a_transposed;

  Problem(std::mt19937& random, std::int64_t m, std::int64_t n, std::int64_t k, auto&& number)
      : a(0, 0, 0),
        b(0, 0, 0),
        c(m, n, gap(random)),
        init(m, n, gap(random)),
        bias(1, n, 0),
        residual(m, n, gap(random)),
        mask(m, n, gap(random)),
        a_transposed(random() % 2 == 0) {
    g.b_transposed = random() % 2 == 0;
    a = a_transposed ? Matrix<T>(k, m, gap(random)) : Matrix<T>(m, k, gap(random));
    b = g.b_transposed ? Matrix<T>(n, k, gap(random)) : Matrix<T>(k, n, gap(random));
    for (Matrix<T>* matrix : {&a, &b, &c, &init, &bias, &residual, &mask})
      matrix->fill_with(number);
    g.m = m;
    g.n = n;
    g.k = k;
    g.sample_rows = pick(random, {1, 8});
    g.a = a.memory.data();
    g.a_row = a_transposed ? 1 : a.stride;
    g.a_col = a_transposed ? a.stride : 1;
    g.b = b.memory.data();
    g.ldb = b.stride;
    g.c = c.memory.data();
    g.ldc = c.stride;
    switch (random() % 4) {
      case 0:
        g.init = g.c;
        g.init_row = g.ldc;
        break;
      case 1:
        g.init = init.memory.data();
        g.init_row = init.stride;
        break;
      case 2:
        g.init = bias.memory.data();
        break;
    }
    if (g.init != nullptr && k <= kGemmBlock && random() % 2) g.step = T(0.5);
    if (random() % 2) return;
    if (random() % 2) g.bias = bias.memory.data();
    if (random() % 2) {
      g.residual = residual.memory.data();
      g.residual_row = residual.stride;
    }
    g.relu = random() % 2;
    if (random() % 2) {
      g.mask = mask.memory.data();
      g.mask_row = mask.stride;
      if (!mask.memory.empty() && random() % 2) {
        mask.memory[random() % mask.memory.size()] = std::numeric_limits<T>::quiet_NaN();
      }
    }
  }

  static std::int64_t gap(std::mt19937& random) { return pick(random, {0, 0, 1, 5}); }

  T element(std::int64_t i, std::int64_t j) {
    T sum = 0;
    for (std::int64_t p = 0; p < g.k; ++p) {
      sum += (a_transposed ? a(p, i) : a(i, p)) * (g.b_transposed ? b(j, p) : b(p, j));
    }
    if (g.step != 0) sum *= -g.step;
    if (g.init != nullptr) sum += g.init[i * g.init_row + j];
    if (g.bias != nullptr) sum += bias(0, j);
    if (g.residual != nullptr) sum += residual(i, j);
    if (g.relu && sum <= 0) sum = 0;
    if (g.mask == nullptr) return sum;
    const T y = mask(i, j);
    return y > 0 ? sum : y <= 0 ? T(0) : y;
  }

  std::vector<T> expected() {
    std::vector<T> result = c.memory;
    for (std::int64_t i = 0; i < g.m; ++i) {
      for (std::int64_t j = 0; j < g.n; ++j) {
        result[static_cast<std::size_t>(i * g.ldc + j)] = element(i, j);
      }
    }
    return result;
  }

  /// Rows [begin, end) of C.
  void multiply(std::int64_t begin, std::int64_t end) {
    Gemm<T> part = g;
    part.m = end - begin;
    part.a += begin * g.a_row;
    part.c += begin * g.ldc;
    if (g.init != nullptr) part.init += begin * g.init_row;
    if (g.residual != nullptr) part.residual += begin * g.residual_row;
    if (g.mask != nullptr) part.mask += begin * g.mask_row;
    std::vector<T> scratch(
        static_cast<std::size_t>(gemm_scratch<T>(part.m, part.n, part.k, part.b_transposed)));
    gemm(part, scratch.data());
  }
};

template <class T>
bool same(const std::vector<T>& x, const std::vector<T>& y) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (!(x[i] == y[i] || (x[i] != x[i] && y[i] != y[i]))) return false;
  }
  return true;
}

template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}

std::int64_t size(std::mt19937& random) {
  return random() % 2 ? 1 + static_cast<std::int64_t>(random() % 40)
                      : pick(random, {1, 8, 16, 24, 32, 48, 65, 72, 88, 96, 100, 130});
}

template <class T>
int wrong_products(std::mt19937& random, int trials) {
  int wrong = 0;
  for (int t = 0; t < trials; ++t) {
    const std::int64_t k = random() % 4 ? size(random) : pick(random, {0, 256, 257, 1000, 2100});
    const auto integer = [&] { return static_cast<int>(random() % 5) - 2; };
    Problem<T> exact(random, size(random), size(random), k, integer);
    const std::vector<T> expected = exact.expected();
    exact.multiply(0, exact.g.m);
    wrong += !same(exact.c.memory, expected);

    const auto real = [&] { return std::normal_distribution<double>()(random); };
    Problem<T> whole(random, size(random), size(random), k, real);
    const std::vector<T> before = whole.c.memory;
    whole.multiply(0, whole.g.m);
    const std::vector<T> at_once = whole.c.memory;
    whole.c.memory = before;
    for (std::int64_t i = 0; i < whole.g.m;) {
      const std::int64_t end =
          std::min(whole.g.m, i + 1 + static_cast<std::int64_t>(random() % 20));
      whole.multiply(i, end);
      i = end;
    }
    wrong += !same_bits(whole.c.memory, at_once);
  }
  return wrong;
}

/// Results that are bound by memory, where gemm goes through C by rows.
template <class T>
int wrong_wide_products(std::mt19937& random) {
  int wrong = 0;
  for (const std::int64_t k : {1, 3, 17, 70}) {
    const std::int64_t m = k < 4 ? 53 : 530;
    const auto integer = [&] { return static_cast<int>(random() % 5) - 2; };
    for (int t = 0; t < 4; ++t) {
      Problem<T> problem(random, m, 517, k, integer);
      const std::vector<T> expected = problem.expected();
      problem.multiply(0, m);
      wrong += !same(problem.c.memory, expected);
    }
  }
  return wrong;
}

/// Scratch memory is enough for every smaller product.
template <class T>
int wrong_scratch(std::mt19937& random, int trials) {
  int wrong = 0;
  for (int t = 0; t < trials; ++t) {
    const auto size = [&] { return pick(random, {1, 8, 24, 50, 72, 127, 128, 300, 1024, 5000}); };
    const std::int64_t m = size(), n = size(), k = size();
    const bool b_transposed = random() % 2 == 0;
    const std::int64_t smaller = gemm_scratch<T>(std::min(m, size()), std::min(n, size()),
                                                 std::min(k, size()), b_transposed);
    wrong += smaller > gemm_scratch<T>(m, n, k, b_transposed);
  }
  return wrong;
}

template <class T>
int wrong_transposes() {
  int wrong = 0;
  for (std::int64_t m = 0; m < 40; ++m) {
    for (std::int64_t n = 0; n < 40; ++n) {
      Matrix<T> in(m, n, n % 3);
      Matrix<T> out(n, m, m % 2);
      int count = 0;
      in.fill_with([&] { return ++count; });
      out.fill_with([] { return 0; });
      transpose(m, n, in.memory.data(), in.stride, out.memory.data(), out.stride);
      for (std::int64_t i = 0; i < n; ++i) {
        for (std::int64_t j = 0; j < out.stride && i * out.stride + j < std::ssize(out.memory);
             ++j) {
          wrong += out(i, j) != (j < m ? in(j, i) : T(0));
        }
      }
    }
  }
  return wrong;
}

}  // namespace

int check_gemm() {
  std::mt19937 random(1);
  const int products = wrong_products<float>(random, 300) + wrong_products<double>(random, 300) +
                       wrong_wide_products<float>(random) + wrong_wide_products<double>(random);
  const int scratch = wrong_scratch<float>(random, 2000) + wrong_scratch<double>(random, 2000);
  const int transposes = wrong_transposes<float>() + wrong_transposes<double>();
  std::printf("wrong: %d products, %d sizes of scratch, %d transposes\n", products, scratch,
              transposes);
  return products + scratch + transposes;
}
