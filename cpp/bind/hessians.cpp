// _core.WorkerHessians: Hessians of the workers' functions as packed triangles, and FedNL's round.
// _core.linear_loss: whether a loss is that of a linear model. Products and systems of triangles.
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
#include "math/cholesky.h"
#include "math/triangular.h"

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
      : dtype_(dtype == "float32" ? DType::float32 : DType::float64),
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
      T* to = write<T>(out, Shape{n, size()}, "out");
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
                              write<T>(estimates, Shape{n_workers_, size()}, "estimates"),
                              write<T>(mean, Shape{size()}, "mean"),
                              indices.data(),
                              write<T>(sent, entries, "sent"),
                              write<T>(replaced, entries, "replaced"),
                              write<T>(norms, Shape{n}, "norms"),
                              errors.is_none() ? nullptr : write<T>(errors, Shape{n}, "errors")};
      const RandomKey key{seed, round, purpose};
      Held held;
      const auto with = [&](const auto& source) {
        without_gil(
            [&] { buropt::learn(compressor, key, source, r, n_workers_, threads_, memory); });
      };
      if (triangles.is_none()) return with(gram_source<T>(weights, penalty, held));
      with(ArraySource<T>{read<T>(triangles, Shape{n_workers_, size()}, held[0], "triangles"),
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
  static const T* read(nb::handle array, const Shape& expected, nb::object& holder,
                       const char* name) {
    Shape shape;
    const std::byte* data = read_array(array, kDTypeOf<T>, shape, holder, name);
    if (!(shape == expected)) {
      raise(ErrorKind::value, "%s must have shape %s, got %s", name, expected.str().c_str(),
            shape.str().c_str());
    }
    return reinterpret_cast<const T*>(data);
  }

  template <class T>
  static T* write(nb::handle array, const Shape& shape, const char* name) {
    return reinterpret_cast<T*>(write_array(array, kDTypeOf<T>, shape, name));
  }

  template <class T>
  GramSource<T> gram_source(nb::handle weights, nb::handle penalty, Held& held) const {
    return {samples_.data(), workers_, d_,
            read<T>(weights, Shape{samples_.n()}, held[0], "weights"),
            penalty.is_none() ? nullptr : read<T>(penalty, Shape{size()}, held[1], "penalty")};
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

/// out = (A + shift I)^-1 b for the packed triangle of A, by Cholesky's factorization; NaN if the
/// matrix is not positive definite.
template <class T>
void solve_triangle(const nb::ndarray<const T, nb::ndim<1>, nb::c_contig>& triangle, double shift,
                    nb::ndarray<T, nb::ndim<1>, nb::c_contig> x) {
  const auto d = static_cast<std::int64_t>(x.shape(0));
  if (static_cast<std::int64_t>(triangle.shape(0)) != triangle_size(d)) {
    raise(ErrorKind::value, "a triangle of (%lld, %lld) has %lld entries, got %zu",
          static_cast<long long>(d), static_cast<long long>(d),
          static_cast<long long>(triangle_size(d)), triangle.shape(0));
  }
  const nb::gil_scoped_release release;
  std::vector<T> a(static_cast<std::size_t>(2 * d * d));
  T* factor = a.data() + d * d;
  unpack_lower(triangle.data(), d, static_cast<T>(shift), a.data());
  cholesky(a.data(), d, factor);
  solve_lower(Triangle<T>{factor, d}, x.data(), 1);
  solve_lower_transposed(Triangle<T>{factor, d}, x.data(), 1);
}

/// out (k, d): the matrices of k triangles times x.
template <class T>
void triangle_products(const nb::ndarray<const T, nb::ndim<2>, nb::c_contig>& triangles,
                       const nb::ndarray<const T, nb::ndim<1>, nb::c_contig>& x,
                       nb::ndarray<T, nb::ndim<2>, nb::c_contig> out) {
  const std::size_t d = x.shape(0);
  const auto size = static_cast<std::size_t>(triangle_size(static_cast<std::int64_t>(d)));
  if (triangles.shape(1) != size || out.shape(0) != triangles.shape(0) || out.shape(1) != d) {
    raise(ErrorKind::value, "triangles must have shape (k, %zu), and out (k, %zu)", size, d);
  }
  const nb::gil_scoped_release release;
  for (std::size_t k = 0; k < out.shape(0); ++k) {
    triangle_times(triangles.data() + k * size, static_cast<std::int64_t>(d), x.data(),
                   out.data() + k * d);
  }
}

template <class T>
void bind_triangles(nb::module_& m) {
  m.def("solve_triangle", solve_triangle<T>, "triangle"_a.noconvert(), "shift"_a, "x"_a.noconvert(),
        "x <- (A + shift I)^-1 x for the packed triangle of A; NaN if that is not positive "
        "definite.");
  m.def("triangle_products", triangle_products<T>, "triangles"_a.noconvert(), "x"_a.noconvert(),
        "out"_a.noconvert(), "out (k, d) <- A_k x for the packed triangles of the A_k.");
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
  bind_triangles<float>(m);
  bind_triangles<double>(m);
}

}  // namespace buropt
