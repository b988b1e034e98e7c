// A sparse matrix by columns, the rows of each worker apart: chosen entries of the workers'
// gradients A_i^T s without the others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "exec/engine.h"
#include "math/lanes.h"

namespace buropt {

/// Column c of worker i has the entries starts[c n + i]..starts[c n + i + 1], in the order of the
/// worker's samples.
template <class T>
class WorkerColumns {
 public:
  WorkerColumns(const CsrData& a, std::int64_t d, std::span<const Batch> workers)
      : n_workers_(workers.size()), starts_(static_cast<std::size_t>(d) * workers.size() + 1, 0) {
    const T* values = reinterpret_cast<const T*>(a.values);
    for_each_entry(a, workers,
                   [&](std::size_t part, std::int64_t, std::int64_t) { ++starts_[part + 1]; });
    for (std::size_t part = 1; part < starts_.size(); ++part) starts_[part] += starts_[part - 1];
    const auto n_entries = static_cast<std::size_t>(starts_.back());
    rows_.resize(n_entries);
    if (values != nullptr) values_.resize(n_entries);
    std::vector<std::int64_t> next(starts_);
    for_each_entry(a, workers, [&](std::size_t part, std::int64_t row, std::int64_t e) {
      const auto place = static_cast<std::size_t>(next[part]++);
      rows_[place] = static_cast<std::int32_t>(row);
      if (values != nullptr) values_[place] = values[e];
    });
  }

  std::size_t n_workers() const noexcept { return n_workers_; }

  /// sum_j a_jc (s_j - t_j) over the rows of a worker; t may be nullptr. Order of summation: entry
  /// e in lane e mod kLanes, the lanes in order.
  T entry(std::int64_t c, std::size_t worker, const T* s, const T* t) const noexcept {
    const std::size_t part = static_cast<std::size_t>(c) * n_workers_ + worker;
    const std::int64_t begin = starts_[part];
    const std::int64_t count = starts_[part + 1] - begin;
    const std::int32_t* rows = rows_.data() + begin;
    if (values_.empty()) {
      return t == nullptr ? sum<false, false>(rows, nullptr, count, s, t)
                          : sum<false, true>(rows, nullptr, count, s, t);
    }
    const T* values = values_.data() + begin;
    return t == nullptr ? sum<true, false>(rows, values, count, s, t)
                        : sum<true, true>(rows, values, count, s, t);
  }

 private:
  static constexpr std::int64_t kLanes = 8;

  /// Calls f(column n + worker, row, entry).
  template <class F>
  void for_each_entry(const CsrData& a, std::span<const Batch> workers, const F& f) const {
    for (std::size_t i = 0; i < workers.size(); ++i) {
      const Batch& batch = workers[i];
      for (std::int64_t k = 0; k < batch.count; ++k) {
        const std::int64_t row = batch.idx == nullptr ? batch.first + k : batch.idx[k];
        for (std::int64_t e = a.row_starts[row]; e < a.row_starts[row + 1]; ++e) {
          f(static_cast<std::size_t>(a.columns[e]) * n_workers_ + i, row, e);
        }
      }
    }
  }

  template <bool has_values, bool has_t>
  static T sum(const std::int32_t* rows, const T* values, std::int64_t count, const T* s,
               const T* t) noexcept {
    T lanes[kLanes] = {};
    const auto add = [&](std::int64_t e, std::int64_t lane) {
      const T term = has_t ? s[rows[e]] - t[rows[e]] : s[rows[e]];
      lanes[lane] = has_values ? multiply_add(values[e], term, lanes[lane]) : lanes[lane] + term;
    };
    std::int64_t e = 0;
    for (; e + kLanes <= count; e += kLanes) {
#pragma GCC unroll 8
      for (std::int64_t lane = 0; lane < kLanes; ++lane) add(e + lane, lane);
    }
    for (std::int64_t lane = 0; e + lane < count; ++lane) add(e + lane, lane);
    T total = 0;
    for (const T lane : lanes) total += lane;
    return total;
  }

  std::size_t n_workers_;
  std::vector<std::int64_t> starts_;
  std::vector<std::int32_t> rows_;
  std::vector<T> values_;  ///< empty: all are 1
};

}  // namespace buropt
