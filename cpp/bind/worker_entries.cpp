// _core.WorkerEntries: chosen entries of the workers' gradients of a linear model over sparse rows.
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <mutex>
#include <optional>
#include <variant>

#include "bind/gil.h"
#include "bind/samples.h"
#include "bind/topics.h"
#include "inner/chosen_entries.h"
#include "inner/patterns.h"

namespace buropt {
namespace {

using namespace nb::literals;

using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
struct Parts {
  using Number = T;

  ChosenEntries<T> chosen;
  std::optional<RowPatterns<T>> patterns;
  std::vector<T> table;
  std::mutex mutex;  ///< of the table

  Parts(const CsrData& a, std::int64_t n, std::int64_t d, std::span<const Batch> workers)
      : chosen(a, d, workers), patterns(RowPatterns<T>::find(a, n, d)) {
    if (patterns) table.resize(patterns->table_size());
  }
};

class WorkerEntries {
 public:
  WorkerEntries(const std::string& dtype, std::int64_t dim, std::int64_t n_samples,
                const nb::list& csr, const nb::list& shards, int threads)
      : dtype_(dtype_from(dtype)),
        d_(dim),
        samples_(dtype_, n_samples, nb::list(), csr),
        threads_(threads) {
    const std::vector<Batch> workers = samples_.split(shards);
    dispatch(dtype_, [&](auto zero) {
      using T = decltype(zero);
      parts_ = std::make_unique<Parts<T>>(samples_.data().csr.at(0), n_samples, d_, workers);
    });
  }
  WorkerEntries(const WorkerEntries&) = delete;
  WorkerEntries& operator=(const WorkerEntries&) = delete;

  /// Whether `products` knows a quicker way than over all entries.
  bool has_patterns() const {
    return std::visit([](const auto& parts) { return parts->patterns.has_value(); }, parts_);
  }

  /// out (n_samples,) = A x.
  void products(nb::handle x, nb::handle out) {
    visit([&](auto& parts) {
      using T = typename std::remove_cvref_t<decltype(parts)>::Number;
      if (!parts.patterns) raise(ErrorKind::value, "these rows do not repeat each other");
      nb::object holder;
      const T* at = read_as<T>(x, Shape{d_}, holder, "x");
      T* to = write_as<T>(out, Shape{samples_.n()}, "out");
      without_gil(parts.mutex,
                  [&] { parts.patterns->times(at, to, parts.table.data(), threads_); });
    });
  }

  /// out (total,) = share times entries of A_i^T (s - t), with t = 0 for None: those that indices
  /// (total,) lists between starts[i] and starts[i + 1] for worker i.
  void entries(Integers starts, Integers indices, nb::handle s, nb::handle t, double share,
               nb::handle out) {
    visit([&](auto& parts) {
      using T = typename std::remove_cvref_t<decltype(parts)>::Number;
      const auto n = static_cast<std::int64_t>(parts.chosen.n_workers());
      const auto total = static_cast<std::int64_t>(indices.shape(0));
      const std::int64_t* first = starts.data();
      if (static_cast<std::int64_t>(starts.shape(0)) != n + 1 || first[0] != 0 ||
          first[n] != total || !std::is_sorted(first, first + n + 1)) {
        raise(ErrorKind::value, "starts must ascend from 0 to %lld in %lld steps",
              static_cast<long long>(total), static_cast<long long>(n));
      }
      const std::int64_t* list = indices.data();
      for (std::int64_t j = 0; j < total; ++j) {
        if (list[j] >= 0 && list[j] < d_) continue;
        raise(ErrorKind::index, "indices contains %lld, but coordinates go from 0 to %lld",
              static_cast<long long>(list[j]), static_cast<long long>(d_ - 1));
      }
      nb::object s_holder, t_holder;
      const T* plus = read_as<T>(s, Shape{samples_.n()}, s_holder, "s");
      const T* minus = t.is_none() ? nullptr : read_as<T>(t, Shape{samples_.n()}, t_holder, "t");
      T* to = write_as<T>(out, Shape{total}, "out");
      without_gil([&] {
        parts.chosen.entries(first, list, plus, minus, static_cast<T>(share), threads_, to);
      });
    });
  }

  /// See ChosenEntries::mean_of_messages.
  std::int64_t mean_of_messages(const Selector& compressor, std::uint64_t seed, std::uint64_t round,
                                std::uint32_t purpose, nb::handle s, nb::handle t, double share,
                                nb::handle penalty, nb::handle out) {
    std::int64_t bits = 0;
    visit([&](auto& parts) {
      using T = typename std::remove_cvref_t<decltype(parts)>::Number;
      check_choice(compressor, static_cast<std::uint32_t>(d_), parts.chosen.n_workers(),
                   compressor.name());
      nb::object s_holder, t_holder, penalty_holder;
      const T* plus = read_as<T>(s, Shape{samples_.n()}, s_holder, "s");
      const T* minus = read_as<T>(t, Shape{samples_.n()}, t_holder, "t");
      const T* added =
          penalty.is_none() ? nullptr : read_as<T>(penalty, Shape{d_}, penalty_holder, "penalty");
      T* mean = write_as<T>(out, Shape{d_}, "out");
      without_gil([&] {
        bits = parts.chosen.mean_of_messages(compressor, {seed, round, purpose}, plus, minus,
                                             static_cast<T>(share), added, threads_, mean);
      });
    });
    return bits;
  }

 private:
  template <class F>
  void visit(const F& f) {
    std::visit([&](auto& parts) { f(*parts); }, parts_);
  }

  DType dtype_;
  std::int64_t d_;
  Samples samples_;
  int threads_;
  std::variant<std::unique_ptr<Parts<float>>, std::unique_ptr<Parts<double>>> parts_;
};

}  // namespace

void bind_worker_entries(nb::module_& m) {
  nb::class_<WorkerEntries>(m, "WorkerEntries",
                            "Entries of the gradients of workers of a sparse linear model.")
      .def(nb::init<const std::string&, std::int64_t, std::int64_t, const nb::list&,
                    const nb::list&, int>(),
           "dtype"_a, "dim"_a, "n_samples"_a, "csr"_a, "shards"_a, "threads"_a)
      .def_prop_ro("has_patterns", &WorkerEntries::has_patterns)
      .def("products", &WorkerEntries::products, "x"_a, "out"_a)
      .def("entries", &WorkerEntries::entries, "starts"_a, "indices"_a, "s"_a, "t"_a.none(),
           "share"_a, "out"_a)
      .def("mean_of_messages", &WorkerEntries::mean_of_messages, "compressor"_a, "seed"_a,
           "round"_a, "purpose"_a, "s"_a, "t"_a, "share"_a, "penalty"_a.none(), "out"_a);
}

}  // namespace buropt
