// Chosen entries of the gradients of all workers, and the mean of the messages that carry them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "base/pool.h"
#include "compress/selector.h"
#include "inner/columns.h"

namespace buropt {

/// Of worker i the vector share A_i^T (s - t), with t = 0 for nullptr; A_i are its rows of a sparse
/// matrix with d columns. Thread-safe; one call at a time.
template <class T>
class ChosenEntries {
 public:
  ChosenEntries(const CsrData& a, std::int64_t d, std::span<const Batch> workers)
      : d_(d), columns_(a, d, workers) {}

  std::size_t n_workers() const noexcept { return columns_.n_workers(); }

  /// out (total,): of worker i the entries that indices lists between starts[i] and starts[i + 1].
  void entries(const std::int64_t* starts, const std::int64_t* indices, const T* s, const T* t,
               T share, int threads, T* out) {
    const std::lock_guard lock(mutex_);
    fill(starts, indices, s, t, threads, out,
         [&](std::int64_t j) { out[j] = rounded_product(out[j], share); });
  }

  /// mean (d,) of what is received if every worker compresses its vector plus `penalty` (d,), or 0
  /// for nullptr; returns the bits of all messages. Workers are added in their order.
  std::int64_t mean_of_messages(const Selector& compressor, const RandomKey& key, const T* s,
                                const T* t, T share, const T* penalty, int threads, T* mean) {
    const auto d = static_cast<std::uint32_t>(d_);
    const auto n = static_cast<std::uint32_t>(n_workers());
    const double scale = compressor.scale(d);
    const std::lock_guard lock(mutex_);
    const auto [starts, indices] = Choice::of(compressor, d, n, key);
    const std::int64_t* list = indices.data();
    T* const sent = reserve(sent_, indices.size());
    fill(starts.data(), list, s, t, threads, sent, [&](std::int64_t j) {
      const T entry = rounded_product(sent[j], share);
      sent[j] = scaled(penalty == nullptr ? entry : entry + penalty[list[j]], scale);
    });
    std::fill_n(mean, d_, T(0));
    for (std::size_t j = 0; j < indices.size(); ++j) mean[list[j]] += sent[j];
    for (std::int64_t c = 0; c < d_; ++c) mean[c] /= static_cast<T>(n);
    std::int64_t bits = 0;
    for (std::uint32_t i = 0; i < n; ++i) {
      const auto n_kept = static_cast<std::uint32_t>(starts[i + 1] - starts[i]);
      bits += compressor.message_bits<T>(n_kept, d);
    }
    return bits;
  }

 private:
  /// finish(j) for every entry as soon as it is known, but for the share.
  template <class F>
  void fill(const std::int64_t* starts, const std::int64_t* indices, const T* s, const T* t,
            int threads, T* out, const F& finish) {
    const std::int64_t size = columns_.scratch();
    T* const scratch = reserve(differences_, static_cast<std::size_t>(threads * size));
    Pool::run(static_cast<std::int64_t>(n_workers()), threads, [&](std::int64_t i, int thread) {
      const std::span columns(indices + starts[i], indices + starts[i + 1]);
      columns_.entries(static_cast<std::size_t>(i), columns, s, t, scratch + thread * size,
                       out + starts[i]);
      for (std::int64_t j = starts[i]; j < starts[i + 1]; ++j) finish(j);
    });
  }

  std::int64_t d_;
  WorkerColumns<T> columns_;
  std::vector<T> differences_;  ///< of each thread
  std::vector<T> sent_;
  std::mutex mutex_;
};

}  // namespace buropt
