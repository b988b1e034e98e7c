// Hessians of the workers' functions of a generalized linear model, and FedNL's round on estimates
// of them (Safaryan, Islamov, Qian, Richtarik, arXiv 2106.02969).
//
// A Hessian is a packed triangle (math/triangle.h) that one thread makes in its own scratch memory;
// it is compared, compressed and forgotten. What is kept of the workers are the estimates alone.
#pragma once

#include <cmath>
#include <mutex>
#include <vector>

#include "base/pool.h"
#include "compress/selector.h"
#include "exec/engine.h"
#include "math/triangle.h"

namespace buropt {

/// Scratch memory of a thread.
template <class T>
struct HessianScratch {
  std::vector<T> difference;
  std::vector<T> gram;
  Scratch selection;
};

/// sum_j w_j a_j a_j^T over the samples of each worker.
template <class T>
struct GramSource {
  const Data& data;  ///< one array: the features
  std::span<const Batch> workers;
  std::int64_t d;
  const T* weights;  ///< (n_samples,)
  const T* penalty;  ///< triangle that every worker's Hessian has in addition, or nullptr

  std::int64_t scratch() const noexcept { return data.dense.empty() ? 0 : gram_scratch<T>(d); }

  void write(std::int64_t worker, T* triangle, T* memory) const noexcept {
    const std::int64_t size = triangle_size(d);
    std::fill_n(triangle, size, T(0));
    const Batch& batch = workers[static_cast<std::size_t>(worker)];
    if (data.dense.empty()) {
      const CsrData& csr = data.csr[0];
      const CsrRows<T> rows{reinterpret_cast<const T*>(csr.values),
                            csr.columns,
                            csr.row_starts,
                            csr.row_starts[data.n_samples],
                            batch.idx,
                            batch.idx == nullptr ? batch.first : 0,
                            batch.count};
      add_gram(rows, weights, d, triangle);
    } else {
      const DenseRows<T> rows{reinterpret_cast<const T*>(data.dense[0].values), batch.idx,
                              batch.idx == nullptr ? batch.first : 0, batch.count};
      add_gram(rows, weights, d, triangle, memory);
    }
    if (penalty == nullptr) return;
    for (std::int64_t i = 0; i < size; ++i) triangle[i] += penalty[i];
  }
};

/// Triangles that somebody else has computed, (workers, size).
template <class T>
struct ArraySource {
  const T* triangles;
  std::int64_t size;

  std::int64_t scratch() const noexcept { return 0; }
  void write(std::int64_t worker, T* triangle, T*) const noexcept {
    std::copy_n(triangles + worker * size, size, triangle);
  }
};

/// The arrays of one round; row k belongs to workers[k].
template <class T>
struct HessianRound {
  std::span<const std::int64_t> workers;
  std::int64_t size;  ///< of a triangle
  std::int64_t kept;  ///< entries in a message
  T alpha;
  T* estimates;            ///< (all workers, size), changed in place: + alpha times the message
  T* mean;                 ///< (size,), their mean, changed likewise
  std::uint32_t* indices;  ///< (workers, kept): where, ascending
  T* sent;                 ///< (workers, kept): the messages
  T* replaced;             ///< (workers, kept): the estimates there before
  T* norms;                ///< (workers,): |Hessian - estimate|_F before
  T* errors;               ///< (workers,): after; nullptr if nobody asks
};

/// Memory of the threads, which stays from round to round; one round at a time.
template <class T>
class HessianThreads {
 public:
  using Number = T;

  template <class F>
  void run(std::int64_t n, int threads, std::int64_t size, std::int64_t gram, const F& task) {
    const std::lock_guard lock(mutex_);
    // Here, since a task must not throw.
    scratch_.resize(std::max(scratch_.size(), static_cast<std::size_t>(threads)));
    for (HessianScratch<T>& s : scratch_) {
      const auto n_entries = static_cast<std::size_t>(size);
      reserve(s.difference, n_entries);
      reserve(s.gram, static_cast<std::size_t>(gram));
      reserve(s.selection.indices, n_entries);
      reserve(s.selection.template magnitudes<T>(), n_entries);
      reserve(s.selection.bitmap, n_entries / 64 + 1);
    }
    Pool::run(n, threads, [&](std::int64_t k, int thread) {
      task(k, scratch_[static_cast<std::size_t>(thread)]);
    });
  }

 private:
  std::mutex mutex_;
  std::vector<HessianScratch<T>> scratch_;
};

/// Each listed worker sends C(Hessian - estimate), and the estimates and their mean follow.
/// The compressor keeps as many entries of every vector.
template <class T, class Source>
void learn(const Selector& compressor, const RandomKey& key, const Source& source,
           const HessianRound<T>& r, std::int64_t n_workers, int threads,
           HessianThreads<T>& memory) {
  const auto d = static_cast<std::uint32_t>(r.size);
  const double scale = compressor.scale(d);
  const auto n = static_cast<std::int64_t>(r.workers.size());
  memory.run(n, threads, r.size, source.scratch(), [&](std::int64_t k, HessianScratch<T>& s) {
    const std::int64_t worker = r.workers[static_cast<std::size_t>(k)];
    T* difference = s.difference.data();
    T* estimate = r.estimates + worker * r.size;
    source.write(worker, difference, s.gram.data());
    for (std::int64_t i = 0; i < r.size; ++i) difference[i] -= estimate[i];
    r.norms[k] = std::sqrt(dot(difference, difference, r.size));
    const Draw draw{key, static_cast<std::uint32_t>(worker)};
    const Selection chosen =
        compressor.select(std::span<const T>(difference, d), d, draw, s.selection);
    for (std::uint32_t j = 0; j < chosen.size; ++j) {
      const std::size_t place = static_cast<std::size_t>(k * r.kept) + j;
      const std::uint32_t i = chosen[j];
      const T sent = scaled(difference[i], scale);
      r.indices[place] = i;
      r.sent[place] = sent;
      r.replaced[place] = estimate[i];
      estimate[i] = multiply_add(r.alpha, sent, estimate[i]);
      difference[i] = multiply_add(-r.alpha, sent, difference[i]);
    }
    if (r.errors != nullptr) r.errors[k] = std::sqrt(dot(difference, difference, r.size));
  });
  const T share = r.alpha / static_cast<T>(n_workers);
  for (std::int64_t j = 0; j < n * r.kept; ++j) {
    T& target = r.mean[r.indices[j]];
    target = multiply_add(share, r.sent[j], target);
  }
}

}  // namespace buropt
