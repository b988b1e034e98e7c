// A sparse matrix by columns, the rows of each worker apart: chosen entries of the workers'
// gradients A_i^T s without the others.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "exec/engine.h"
#include "math/lanes.h"

namespace buropt {

/// Column c of worker i has the entries starts[c n + i]..starts[c n + i + 1], in the order of the
/// worker's samples. Of their rows only the distance from the worker's lowest row is stored.
template <class T>
class WorkerColumns {
 public:
  WorkerColumns(const CsrData& a, std::int64_t d, std::span<const Batch> workers)
      : n_workers_(workers.size()), starts_(static_cast<std::size_t>(d) * workers.size() + 1, 0) {
    std::int64_t span = 0;
    for (const Batch& batch : workers) {
      std::int64_t low = row_of(batch, 0);
      std::int64_t high = low;
      for (std::int64_t k = 0; k < batch.count; ++k) {
        low = std::min(low, row_of(batch, k));
        high = std::max(high, row_of(batch, k));
      }
      lowest_.push_back(low);
      spans_.push_back(high - low + 1);
      span = std::max(span, high - low);
    }
    for_each_entry(a, workers,
                   [&](std::size_t part, std::int64_t, std::int64_t) { ++starts_[part + 1]; });
    for (std::size_t part = 1; part < starts_.size(); ++part) starts_[part] += starts_[part - 1];
    if (span <= std::numeric_limits<std::uint16_t>::max()) {
      fill(a, workers, near_rows_);
    } else {
      fill(a, workers, far_rows_);
    }
  }

  std::size_t n_workers() const noexcept { return n_workers_; }

  /// Elements of scratch that `entries` needs.
  std::int64_t scratch() const noexcept { return *std::max_element(spans_.begin(), spans_.end()); }

  /// out[k] = sum_j a_jc (s_j - t_j) over the rows of a worker, for the k-th of the columns c; t =
  /// 0 for nullptr. Order of summation: entry e in lane e mod kLanes, the lanes in order.
  void entries(std::size_t worker, std::span<const std::int64_t> columns, const T* s, const T* t,
               T* scratch, T* out) const noexcept {
    const std::int64_t low = lowest_[worker];
    const T* plus = s + low;
    if (t == nullptr) {
      return sums(worker, columns, [=](std::int64_t j) { return plus[j]; }, out);
    }
    const T* minus = t + low;
    std::int64_t total = 0;
    for (const std::int64_t c : columns) {
      prefetch(part_of(c, worker));
      total += size_of_part(part_of(c, worker));
    }
    if (2 * total < spans_[worker]) {  // the columns meet few rows
      return sums(worker, columns, [=](std::int64_t j) { return plus[j] - minus[j]; }, out);
    }
    for (std::int64_t j = 0; j < spans_[worker]; ++j) scratch[j] = plus[j] - minus[j];
    sums(worker, columns, [=](std::int64_t j) { return scratch[j]; }, out);
  }

 private:
  static constexpr std::int64_t kLanes = 8;

  static std::int64_t row_of(const Batch& batch, std::int64_t k) noexcept {
    return batch.idx == nullptr ? batch.first + k : batch.idx[k];
  }

  std::size_t part_of(std::int64_t c, std::size_t worker) const noexcept {
    return static_cast<std::size_t>(c) * n_workers_ + worker;
  }

  /// Calls f(part, row less the worker's lowest, entry).
  template <class F>
  void for_each_entry(const CsrData& a, std::span<const Batch> workers, const F& f) const {
    for (std::size_t i = 0; i < workers.size(); ++i) {
      for (std::int64_t k = 0; k < workers[i].count; ++k) {
        const std::int64_t row = row_of(workers[i], k);
        for (std::int64_t e = a.row_starts[row]; e < a.row_starts[row + 1]; ++e) {
          f(part_of(a.columns[e], i), row - lowest_[i], e);
        }
      }
    }
  }

  template <class Row>
  void fill(const CsrData& a, std::span<const Batch> workers, std::vector<Row>& rows) {
    const T* values = reinterpret_cast<const T*>(a.values);
    rows.resize(static_cast<std::size_t>(starts_.back()));
    if (values != nullptr) values_.resize(rows.size());
    std::vector<std::int64_t> next(starts_);
    for_each_entry(a, workers, [&](std::size_t part, std::int64_t row, std::int64_t e) {
      const auto place = static_cast<std::size_t>(next[part]++);
      rows[place] = static_cast<Row>(row);
      if (values != nullptr) values_[place] = values[e];
    });
  }

  /// Brings a column that comes soon nearer: chosen columns lie apart.
  void prefetch(std::size_t part) const noexcept {
    const auto begin = static_cast<std::size_t>(starts_[part]);
    if (!near_rows_.empty()) __builtin_prefetch(near_rows_.data() + begin);
    if (!far_rows_.empty()) __builtin_prefetch(far_rows_.data() + begin);
    if (!values_.empty()) __builtin_prefetch(values_.data() + begin);
  }

  std::int64_t size_of_part(std::size_t part) const noexcept {
    return starts_[part + 1] - starts_[part];
  }

  /// f(row less the worker's lowest): what the entries of that row are multiplied by.
  template <class F>
  void sums(std::size_t worker, std::span<const std::int64_t> columns, const F& f,
            T* out) const noexcept {
    for (std::size_t k = 0; k < columns.size(); ++k) {
      const std::size_t part = part_of(columns[k], worker);
      out[k] = near_rows_.empty() ? sum(far_rows_, part, f) : sum(near_rows_, part, f);
    }
  }

  template <class Row, class F>
  T sum(const std::vector<Row>& all_rows, std::size_t part, const F& f) const noexcept {
    const std::int64_t begin = starts_[part];
    const std::int64_t count = size_of_part(part);
    const Row* rows = all_rows.data() + begin;
    return values_.empty() ? sum<false>(rows, nullptr, count, f)
                           : sum<true>(rows, values_.data() + begin, count, f);
  }

  template <bool has_values, class Row, class F>
  static T sum(const Row* rows, const T* values, std::int64_t count, const F& f) noexcept {
    T lanes[kLanes] = {};
    const auto add = [&](std::int64_t e, std::int64_t lane) {
      const T term = f(rows[e]);
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
  std::vector<std::int64_t> lowest_;  ///< by worker: its lowest row
  std::vector<std::int64_t> spans_;   ///< by worker: rows from there to its highest
  std::vector<std::int64_t> starts_;
  std::vector<std::uint16_t> near_rows_;  ///< if all of them fit, and otherwise far_rows_
  std::vector<std::int32_t> far_rows_;
  std::vector<T> values_;  ///< empty: all are 1
};

}  // namespace buropt
