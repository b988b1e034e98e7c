// _core.GeneralLoops: many steps of a stochastic method on any compiled loss in one call.
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <variant>

#include "bind/gil.h"
#include "bind/steps.h"
#include "bind/topics.h"
#include "inner/general.h"

namespace buropt {
namespace {

using namespace nb::literals;
using ProxTuple = std::tuple<std::string, double, double>;

template <class T>
Prox<T> prox_from(const ProxTuple& prox) {
  const auto& [kind, first, second] = prox;
  if (kind == "l1") return {Prox<T>::l1, first, second};
  if (kind == "elastic_net") return {Prox<T>::elastic_net, first, second};
  if (kind == "box") return {Prox<T>::box, first, second};
  if (kind == "none") return {};
  raise(ErrorKind::value, "there is no prox of kind %s", kind.c_str());
}

class GeneralLoops {
 public:
  /// As for an Evaluator of the gradient.
  GeneralLoops(std::shared_ptr<Graph> graph,
               const std::vector<std::tuple<std::string, std::int32_t, std::int64_t>>& inputs,
               const std::vector<std::pair<std::int32_t, std::int64_t>>& outputs, std::int64_t dim,
               const nb::list& dense, const nb::list& csr, std::int64_t n_samples, int threads)
      : dtype_(graph->nodes.at(0).type.dtype), d_(dim), samples_(dtype_, n_samples, dense, csr) {
    std::vector<InputRole> roles;
    for (const auto& [kind, number, offset] : inputs) {
      roles.push_back(role_from(kind, number, offset));
    }
    std::vector<OutputRole> places;
    for (const auto& [vector, offset] : outputs) places.push_back({vector, offset, 0});
    engine_ = std::make_unique<Engine>(graph, roles, places, samples_.data());
    dispatch(dtype_, [&](auto zero) {
      using T = decltype(zero);
      loops_ = std::make_unique<GeneralSteps<T>>(*engine_, d_, threads);
    });
  }
  GeneralLoops(const GeneralLoops&) = delete;
  GeneralLoops& operator=(const GeneralLoops&) = delete;

  std::int64_t sgd(nb::handle idx, nb::handle weights,
                   const nb::ndarray<const double, nb::ndim<1>, nb::c_contig>& step_sizes,
                   const ProxTuple& prox, nb::handle x, double seconds) {
    return run<std::int64_t>(idx, weights, [&](auto& loops, const ReadSteps& read, auto zero) {
      using T = decltype(zero);
      if (static_cast<std::int64_t>(step_sizes.size()) != read.steps.count) {
        raise(ErrorKind::value, "step_sizes must have one number a step");
      }
      T* point = write_as<T>(x, Shape{d_}, "x");
      return locked([&] {
        return loops.sgd(read.steps, step_sizes.data(), reinterpret_cast<const T*>(read.weights),
                         prox_from<T>(prox), Deadline(seconds), point);
      });
    });
  }

  std::int64_t svrg(nb::handle idx, nb::handle weights, double step_size, const ProxTuple& prox,
                    nb::handle w, nb::handle full, nb::handle x, double seconds) {
    return run<std::int64_t>(idx, weights, [&](auto& loops, const ReadSteps& read, auto zero) {
      using T = decltype(zero);
      nb::object w_holder, full_holder;
      const T* snapshot = read_as<T>(w, Shape{d_}, w_holder, "w");
      const T* gradient = read_as<T>(full, Shape{d_}, full_holder, "full");
      T* point = write_as<T>(x, Shape{d_}, "x");
      return locked([&] {
        return loops.svrg(read.steps, step_size, reinterpret_cast<const T*>(read.weights),
                          prox_from<T>(prox), Deadline(seconds), snapshot, gradient, point);
      });
    });
  }

  std::int64_t saga(nb::handle idx, nb::handle weights, double step_size, const ProxTuple& prox,
                    nb::handle x, nb::handle table, nb::handle mean, double seconds) {
    return run<std::int64_t>(idx, weights, [&](auto& loops, const ReadSteps& read, auto zero) {
      using T = decltype(zero);
      T* point = write_as<T>(x, Shape{d_}, "x");
      T* average = write_as<T>(mean, Shape{d_}, "mean");
      T* rows = write_as<T>(table, Shape{samples_.n(), d_}, "table");
      return locked([&] {
        return loops.saga(read.steps, step_size, reinterpret_cast<const T*>(read.weights),
                          samples_.n(), prox_from<T>(prox), Deadline(seconds), point, rows,
                          average);
      });
    });
  }

  std::int64_t sarah(nb::handle idx, double step_size, nb::handle x, nb::handle v, double seconds) {
    return run<std::int64_t>(idx, nb::none(), [&](auto& loops, const ReadSteps& read, auto zero) {
      using T = decltype(zero);
      T* point = write_as<T>(x, Shape{d_}, "x");
      T* estimate = write_as<T>(v, Shape{d_}, "v");
      return locked(
          [&] { return loops.sarah(read.steps, step_size, Deadline(seconds), point, estimate); });
    });
  }

  /// coupling: theta1, theta2, step_size, mu; mean (d,) of the points y, or None, with `points` in
  /// it.
  std::int64_t coupled(nb::handle idx, nb::handle weights,
                       const std::tuple<double, double, double, double>& coupling,
                       const ProxTuple& prox, nb::handle w, nb::handle full, nb::handle y,
                       nb::handle z, nb::handle mean, std::int64_t points, double seconds) {
    return run<std::int64_t>(idx, weights, [&](auto& loops, const ReadSteps& read, auto zero) {
      using T = decltype(zero);
      nb::object w_holder, full_holder;
      const T* snapshot = read_as<T>(w, Shape{d_}, w_holder, "w");
      const T* gradient = read_as<T>(full, Shape{d_}, full_holder, "full");
      T *point = write_as<T>(y, Shape{d_}, "y"), *moving = write_as<T>(z, Shape{d_}, "z");
      const auto [theta1, theta2, step_size, mu] = coupling;
      const Coupling c{theta1, theta2, step_size, mu};
      const RunningMean<T> running{mean.is_none() ? nullptr : write_as<T>(mean, Shape{d_}, "mean"),
                                   1 + step_size * mu, points};
      return locked([&] {
        return loops.coupled(read.steps, c, reinterpret_cast<const T*>(read.weights),
                             prox_from<T>(prox), Deadline(seconds), snapshot, gradient, point,
                             moving, running);
      });
    });
  }

 private:
  template <class R, class F>
  R run(nb::handle idx, nb::handle weights, const F& f) {
    const ReadSteps read(idx, weights, dtype_, samples_);
    return dispatch(dtype_, [&](auto zero) {
      using T = decltype(zero);
      return f(*std::get<std::unique_ptr<GeneralSteps<T>>>(loops_), read, zero);
    });
  }
  template <class F>
  std::int64_t locked(const F& f) {
    std::int64_t result = 0;
    without_gil(mutex_, [&] { result = f(); });
    return result;
  }

  DType dtype_;
  std::int64_t d_;
  Samples samples_;
  std::unique_ptr<Engine> engine_;
  std::mutex mutex_;  ///< the loops have one set of scratch vectors
  std::variant<std::unique_ptr<GeneralSteps<float>>, std::unique_ptr<GeneralSteps<double>>> loops_;
};

}  // namespace

void bind_general_loops(nb::module_& m) {
  nb::class_<GeneralLoops>(m, "GeneralLoops", "Steps of stochastic methods on any compiled loss.")
      .def(nb::init<std::shared_ptr<Graph>,
                    const std::vector<std::tuple<std::string, std::int32_t, std::int64_t>>&,
                    const std::vector<std::pair<std::int32_t, std::int64_t>>&, std::int64_t,
                    const nb::list&, const nb::list&, std::int64_t, int>(),
           "graph"_a, "inputs"_a, "outputs"_a, "dim"_a, "dense"_a, "csr"_a, "n_samples"_a,
           "threads"_a)
      .def("sgd", &GeneralLoops::sgd, "idx"_a, "weights"_a.none(), "step_sizes"_a, "prox"_a, "x"_a,
           "seconds"_a)
      .def("svrg", &GeneralLoops::svrg, "idx"_a, "weights"_a.none(), "step_size"_a, "prox"_a, "w"_a,
           "full"_a, "x"_a, "seconds"_a)
      .def("saga", &GeneralLoops::saga, "idx"_a, "weights"_a.none(), "step_size"_a, "prox"_a, "x"_a,
           "table"_a, "mean"_a, "seconds"_a)
      .def("sarah", &GeneralLoops::sarah, "idx"_a, "step_size"_a, "x"_a, "v"_a, "seconds"_a)
      .def("coupled", &GeneralLoops::coupled, "idx"_a, "weights"_a.none(), "coupling"_a, "prox"_a,
           "w"_a, "full"_a, "y"_a, "z"_a, "mean"_a.none(), "points"_a, "seconds"_a);
}

}  // namespace buropt
