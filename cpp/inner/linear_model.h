// A generalized linear model over sparse rows: f_i(x) = phi(a_i'x; y_i) + (l2 / 2) |x|^2 + l1
// |x|_1.
#pragma once

#include <memory>
#include <vector>

#include "exec/engine.h"
#include "exec/scalar.h"
#include "graph/linear.h"

namespace buropt {

namespace detail {

template <class T>
struct Two;
template <>
struct Two<float> {
  using Type = float __attribute__((vector_size(8)));
};
template <>
struct Two<double> {
  using Type = double __attribute__((vector_size(16)));
};

}  // namespace detail

/// An entry of two vectors side by side, which is loaded and stored at once.
template <class T>
using TwoOf = typename detail::Two<T>::Type;

/// The samples and the slope phi'. Not for several threads at once: each has its own.
template <class T>
class LinearModel {
 public:
  using Number = T;
  struct Row {
    const T* values;  ///< nullptr: all are 1
    const std::int32_t* columns;
    std::int64_t size;

    T value(std::int64_t e) const noexcept { return values == nullptr ? T(1) : values[e]; }
  };

  /// Nothing if phi cannot be computed number by number.
  static std::unique_ptr<LinearModel> make(const LinearLoss& loss, const Data& data,
                                           const CsrData& features,
                                           const std::vector<const T*>& others) {
    auto program = ScalarProgram<T>::compile(*loss.slope);
    if (!program) return nullptr;
    return std::unique_ptr<LinearModel>(
        new LinearModel(std::move(*program), data.n_samples, features, others));
  }

  std::int64_t n_samples() const noexcept { return n_; }

  Row row(std::int64_t i) const noexcept {
    const std::int64_t begin = features_.row_starts[i];
    const T* values = reinterpret_cast<const T*>(features_.values);
    return {values == nullptr ? nullptr : values + begin, features_.columns + begin,
            features_.row_starts[i + 1] - begin};
  }

  /// Brings a sample that comes soon nearer: samples in random order are in no cache.
  void prefetch(std::int64_t i) const noexcept {
    const std::int64_t begin = features_.row_starts[i];
    __builtin_prefetch(features_.columns + begin);
    __builtin_prefetch(features_.columns + begin + 16);
    if (features_.values != nullptr) {
      const T* values = reinterpret_cast<const T*>(features_.values) + begin;
      __builtin_prefetch(values);
      __builtin_prefetch(values + 8);
    }
    for (const Other& other : others_) __builtin_prefetch(other.numbers + i);
  }
  void prefetch_start(std::int64_t i) const noexcept {
    __builtin_prefetch(features_.row_starts + i);
  }

  /// a'x.
  T product(const Row& row, const T* x) const noexcept {
    return with_values(row, [&](auto value) {
      T even = 0, odd = 0;  // so that additions do not wait for each other
      std::int64_t e = 0;
      for (; e + 2 <= row.size; e += 2) {
        even += value(e) * x[row.columns[e]];
        odd += value(e + 1) * x[row.columns[e + 1]];
      }
      if (e < row.size) even += value(e) * x[row.columns[e]];
      return even + odd;
    });
  }
  /// a'p and a'q of interleaved vectors.
  TwoOf<T> product(const Row& row, const TwoOf<T>* pq) const noexcept {
    return with_values(row, [&](auto value) {
      TwoOf<T> sums[4] = {};
      std::int64_t e = 0;
      for (; e + 4 <= row.size; e += 4) {
        for (int k = 0; k < 4; ++k) sums[k] += value(e + k) * pq[row.columns[e + k]];
      }
      for (; e < row.size; ++e) sums[0] += value(e) * pq[row.columns[e]];
      return (sums[0] + sums[1]) + (sums[2] + sums[3]);
    });
  }
  /// p += c a.
  void add(const Row& row, T c, T* p) const noexcept {
    with_values(row, [&](auto value) {
      for (std::int64_t e = 0; e < row.size; ++e) p[row.columns[e]] += c * value(e);
      return 0;
    });
  }
  /// p += c a and q += f a, interleaved.
  void add(const Row& row, T c, T f, TwoOf<T>* pq) const noexcept {
    const TwoOf<T> factors = {c, f};
    with_values(row, [&](auto value) {
      for (std::int64_t e = 0; e < row.size; ++e) pq[row.columns[e]] += factors * value(e);
      return 0;
    });
  }

  /// phi'(z) of sample i.
  T slope(std::int64_t i, T z) noexcept {
    T* registers = registers_.data();
    registers[z_] = z;
    for (const Other& other : others_) registers[other.place] = other.numbers[i];
    program_.run_registers(registers);
    return registers[slope_];
  }

 private:
  /// f(value of entry e), a loop for rows of ones and one for others.
  template <class F>
  static auto with_values(const Row& row, const F& f) noexcept {
    if (row.values == nullptr) return f([](std::int64_t) { return T(1); });
    return f([&](std::int64_t e) { return row.values[e]; });
  }

  /// Numbers of the samples (n,), and the register that takes them.
  struct Other {
    const T* numbers;
    std::size_t place;
  };

  LinearModel(ScalarProgram<T> program, std::int64_t n, const CsrData& features,
              const std::vector<const T*>& others)
      : program_(std::move(program)),
        registers_(program_.new_registers()),
        n_(n),
        features_(features),
        z_(place_of(0)),
        slope_(static_cast<std::size_t>(program_.output_register(0))) {
    for (std::size_t k = 0; k < others.size(); ++k) {
      others_.push_back({others[k], place_of(static_cast<std::int32_t>(k) + 1)});
    }
  }

  /// The register of an input; one of its own where nobody reads it.
  std::size_t place_of(std::int32_t input) {
    const std::int32_t place = program_.input_register(input);
    if (place >= 0) return static_cast<std::size_t>(place);
    registers_.push_back(T(0));
    return registers_.size() - 1;
  }

  ScalarProgram<T> program_;
  std::vector<T> registers_;
  std::int64_t n_;
  CsrData features_;
  std::size_t z_;
  std::size_t slope_;
  std::vector<Other> others_;
};

}  // namespace buropt
