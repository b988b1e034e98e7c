// _core.WorkerHessians: Hessians of the workers' functions as packed triangles, and FedNL's round.
// _core.linear_loss: whether a loss is that of a linear model.
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <variant>

#include "bind/gil.h"
#include "bind/samples.h"
#include "bind/topics.h"
#include "compress/selector.h"
#include "graph/linear.h"
#include "inner/hessians.h"

namespace buropt {
namespace {

using namespace nb::literals;

using IndexArray = nb::ndarray<std::uint32_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

class WorkerHessians {
 public:
  /// The features, one dense or CSR array, and each worker's samples. Without features there is
  /// only `learn` from triangles that the call brings.
  WorkerHessians(const std::string& dtype, std::int64_t dim, std::int64_t n_samples,
                 const nb::list& dense, const nb::list& csr, const nb::list& shards, int threads)
      : dtype_(dtype_from(dtype)),
        d_(dim),
        n_workers_(static_cast<std::int64_t>(shards.size())),
        samples_(dtype_, n_samples, dense, csr),
        workers_(samples_.split(shards)),
        threads_(threads) {
    if (dtype_ == DType::float32) memory_.emplace<HessianThreads<float>>();
  }
  WorkerHessians(const WorkerHessians&) = delete;
  WorkerHessians& operator=(const WorkerHessians&) = delete;

  /// The triangles of the listed workers, into out (workers, size).
  void triangles(nb::handle weights, nb::handle penalty, nb::handle workers, nb::handle out) {
    nb::object holder;
    const std::span<const std::int64_t> list = read_workers(workers, holder);
    const auto n = static_cast<std::int64_t>(list.size());
    visit([&](auto& memory) {
      using T = typename std::remove_cvref_t<decltype(memory)>::Number;
      Held held;
      const GramSource<T> source = gram_source<T>(weights, penalty, held);
      T* to = write_as<T>(out, Shape{n, size()}, "out");
      without_gil([&] {
        memory.run(n, threads_, 0, source.scratch(), [&](std::int64_t k, HessianScratch<T>& s) {
          source.write(list[static_cast<std::size_t>(k)], to + k * size(), s.gram.data());
        });
      });
    });
  }

  /// See HessianRound. The Hessians come from the samples' weights, or are given as triangles.
  void learn(const Selector& compressor, std::uint64_t seed, std::uint64_t round,
             std::uint32_t purpose, nb::handle weights, nb::handle penalty, nb::handle triangles,
             nb::handle workers, double alpha, nb::handle estimates, nb::handle mean,
             IndexArray indices, nb::handle sent, nb::handle replaced, nb::handle norms,
             nb::handle errors) {
    compressor.check(static_cast<std::uint32_t>(size()));
    const std::uint32_t kept = compressor.kept(static_cast<std::uint32_t>(size()));
    nb::object holder;
    const std::span<const std::int64_t> list = read_workers(workers, holder);
    const auto n = static_cast<std::int64_t>(list.size());
    if (indices.shape(0) != list.size() || indices.shape(1) != kept) {
      raise(ErrorKind::value, "indices must have shape (%zu, %u)", list.size(), kept);
    }
    visit([&](auto& memory) {
      using T = typename std::remove_cvref_t<decltype(memory)>::Number;
      const Shape entries{n, kept};
      const HessianRound<T> r{list,
                              size(),
                              kept,
                              static_cast<T>(alpha),
                              write_as<T>(estimates, Shape{n_workers_, size()}, "estimates"),
                              write_as<T>(mean, Shape{size()}, "mean"),
                              indices.data(),
                              write_as<T>(sent, entries, "sent"),
                              write_as<T>(replaced, entries, "replaced"),
                              write_as<T>(norms, Shape{n}, "norms"),
                              errors.is_none() ? nullptr : write_as<T>(errors, Shape{n}, "errors")};
      const RandomKey key{seed, round, purpose};
      Held held;
      const auto with = [&](const auto& source) {
        without_gil(
            [&] { buropt::learn(compressor, key, source, r, n_workers_, threads_, memory); });
      };
      if (triangles.is_none()) return with(gram_source<T>(weights, penalty, held));
      with(ArraySource<T>{read_as<T>(triangles, Shape{n_workers_, size()}, held[0], "triangles"),
                          size()});
    });
  }

 private:
  using Held = std::array<nb::object, 2>;  ///< converted arrays that a call reads

  std::int64_t size() const { return triangle_size(d_); }

  template <class F>
  void visit(const F& f) {
    std::visit(f, memory_);
  }

  template <class T>
  GramSource<T> gram_source(nb::handle weights, nb::handle penalty, Held& held) const {
    return {samples_.data(), workers_, d_,
            read_as<T>(weights, Shape{samples_.n()}, held[0], "weights"),
            penalty.is_none() ? nullptr : read_as<T>(penalty, Shape{size()}, held[1], "penalty")};
  }

  std::span<const std::int64_t> read_workers(nb::handle workers, nb::object& holder) const {
    Shape shape;
    const std::int64_t* list = read_integers(workers, shape, holder, "workers");
    const std::span<const std::int64_t> result(list, static_cast<std::size_t>(shape.size()));
    for (const std::int64_t worker : result) {
      if (worker < 0 || worker >= n_workers_) {
        raise(ErrorKind::index, "workers contains %lld, but workers go from 0 to %lld",
              static_cast<long long>(worker), static_cast<long long>(n_workers_ - 1));
      }
    }
    return result;
  }

  DType dtype_;
  std::int64_t d_;
  std::int64_t n_workers_;
  Samples samples_;
  std::vector<Batch> workers_;
  int threads_;
  std::variant<HessianThreads<double>, HessianThreads<float>> memory_;
};

/// (number of the input that is the row of features, those of the other data, slope), or nothing.
std::optional<std::tuple<std::int32_t, std::vector<std::int32_t>, std::shared_ptr<Graph>>>
read_linear_loss(const Graph& graph) {
  auto loss = linear_loss(graph);
  if (!loss) return std::nullopt;
  return std::tuple(loss->features, loss->others, std::const_pointer_cast<Graph>(loss->slope));
}

}  // namespace

void bind_hessians(nb::module_& m) {
  nb::class_<WorkerHessians> c(m, "WorkerHessians", "Hessians of workers as packed triangles.");
  c.def(nb::init<const std::string&, std::int64_t, std::int64_t, const nb::list&, const nb::list&,
                 const nb::list&, int>(),
        "dtype"_a, "dim"_a, "n_samples"_a, "dense"_a, "csr"_a, "shards"_a, "threads"_a)
      .def("triangles", &WorkerHessians::triangles, "weights"_a, "penalty"_a.none(), "workers"_a,
           "out"_a)
      .def("learn", &WorkerHessians::learn, "compressor"_a, "seed"_a, "round"_a, "purpose"_a,
           "weights"_a.none(), "penalty"_a.none(), "triangles"_a.none(), "workers"_a, "alpha"_a,
           "estimates"_a, "mean"_a, "indices"_a, "sent"_a, "replaced"_a, "norms"_a,
           "errors"_a.none());
  m.def("linear_loss", read_linear_loss, "graph"_a,
        "Inputs that are the row of features and the other data of a linear model, and its slope.");
}

}  // namespace buropt
