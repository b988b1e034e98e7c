// A generalized linear model over sparse rows: f_i(x) = phi(a_i'x; y_i) + (l2 / 2) |x|^2 + l1
// |x|_1.
#pragma once

#include <memory>
#include <vector>

#include "exec/engine.h"
#include "exec/scalar.h"
#include "graph/linear.h"

namespace buropt {

/// The regularizer, and the proximal operator that belongs to it.
template <class T>
struct Penalty {
  T l2;
  T l1;
};

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
                                           const CsrData& features, std::vector<const T*> others) {
    auto program = ScalarProgram<T>::compile(*loss.slope);
    if (!program) return nullptr;
    return std::unique_ptr<LinearModel>(
        new LinearModel(std::move(*program), data.n_samples, features, std::move(others)));
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
    for (const T* other : others_) __builtin_prefetch(other + i);
  }
  void prefetch_start(std::int64_t i) const noexcept {
    __builtin_prefetch(features_.row_starts + i);
  }

  /// a'x, entry after entry.
  T product(const Row& row, const T* x) const noexcept {
    T sum = 0;
    for (std::int64_t e = 0; e < row.size; ++e) sum += row.value(e) * x[row.columns[e]];
    return sum;
  }

  /// a'p and a'q, in one order whatever comes before or after.
  std::pair<T, T> products(const Row& row, const T* p, const T* q) const noexcept {
    if (row.values == nullptr) return products(row, p, q, [](std::int64_t) { return T(1); });
    return products(row, p, q, [&](std::int64_t e) { return row.values[e]; });
  }
  /// p += c a and q += e a.
  void add(const Row& row, T c, T e, T* p, T* q) const noexcept {
    for (std::int64_t k = 0; k < row.size; ++k) {
      const std::int32_t j = row.columns[k];
      p[j] += c * row.value(k);
      q[j] += e * row.value(k);
    }
  }
  void add(const Row& row, T c, T* p) const noexcept {
    for (std::int64_t k = 0; k < row.size; ++k) p[row.columns[k]] += c * row.value(k);
  }

  /// phi'(z) of sample i.
  T slope(std::int64_t i, T z) noexcept {
    arguments_[0] = &z;
    for (std::size_t k = 0; k < others_.size(); ++k) arguments_[k + 1] = others_[k] + i;
    T result;
    T* out = &result;
    program_.run(arguments_.data(), &out, registers_);
    return result;
  }

 private:
  template <class F>
  static std::pair<T, T> products(const Row& row, const T* p, const T* q, F value) noexcept {
    // Two sums each, so that additions do not wait for each other.
    T p0 = 0, p1 = 0, q0 = 0, q1 = 0;
    std::int64_t e = 0;
    for (; e + 2 <= row.size; e += 2) {
      const std::int32_t i = row.columns[e], j = row.columns[e + 1];
      p0 += value(e) * p[i];
      p1 += value(e + 1) * p[j];
      q0 += value(e) * q[i];
      q1 += value(e + 1) * q[j];
    }
    if (e < row.size) {
      p0 += value(e) * p[row.columns[e]];
      q0 += value(e) * q[row.columns[e]];
    }
    return {p0 + p1, q0 + q1};
  }

  LinearModel(ScalarProgram<T> program, std::int64_t n, const CsrData& features,
              std::vector<const T*> others)
      : program_(std::move(program)),
        registers_(program_.new_registers()),
        n_(n),
        features_(features),
        others_(std::move(others)),
        arguments_(others_.size() + 1) {}

  ScalarProgram<T> program_;
  std::vector<T> registers_;
  std::int64_t n_;
  CsrData features_;
  std::vector<const T*> others_;
  std::vector<const T*> arguments_;
};

}  // namespace buropt
