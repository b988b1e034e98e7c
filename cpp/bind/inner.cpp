// _core.LinearLoops: many steps of a stochastic method on a generalized linear model in one call.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <variant>

#include "bind/arrays.h"
#include "bind/gil.h"
#include "bind/samples.h"
#include "bind/topics.h"
#include "inner/saga.h"
#include "inner/sarah.h"
#include "inner/svrg.h"

namespace buropt {
namespace {

using namespace nb::literals;

/// Steps between two looks for signals, so that Ctrl-C is heard.
constexpr std::int64_t kBlock = 1 << 14;

class LinearLoops {
 public:
  /// Sources of the graph's inputs behind the parameters: ("dense" or "csr", number).
  LinearLoops(const Graph& graph, const std::vector<std::pair<std::string, std::int32_t>>& sources,
              const nb::list& dense, const nb::list& csr, std::int64_t n_samples)
      : dtype_(graph.nodes.at(0).type.dtype),
        d_(graph.node(graph.inputs.at(0).node).type.shape.size()),
        samples_(dtype_, n_samples, dense, csr) {
    const auto loss = linear_loss(graph);
    if (!loss) return;
    const auto& [kind, number] = sources.at(static_cast<std::size_t>(loss->features) - 1);
    if (kind != "csr") return;
    dispatch(dtype_, [&](auto zero) {
      using T = decltype(zero);
      std::vector<const T*> others;
      for (const std::int32_t other : loss->others) {
        const auto source =
            static_cast<std::size_t>(sources.at(static_cast<std::size_t>(other) - 1).second);
        others.push_back(reinterpret_cast<const T*>(samples_.data().dense.at(source).values));
      }
      model_ = LinearModel<T>::make(*loss, samples_.data(),
                                    samples_.data().csr.at(static_cast<std::size_t>(number)),
                                    std::move(others));
    });
  }
  LinearLoops(const LinearLoops&) = delete;
  LinearLoops& operator=(const LinearLoops&) = delete;

  bool applies() const {
    return std::visit([](const auto& model) { return model != nullptr; }, model_);
  }

  void saga(nb::handle samples, double step_size, double l2, double l1, nb::handle x,
            nb::handle table, nb::handle mean) {
    run([&](auto& model) {
      using T = typename std::remove_cvref_t<decltype(model)>::Number;
      std::vector<Source> seen;
      const SagaState<T> state{vector<T>(x, d_, "x", seen),
                               vector<T>(table, samples_.n(), "table", seen),
                               vector<T>(mean, d_, "mean", seen)};
      for_blocks(samples, false, [&](std::span<const std::int64_t> block, std::int64_t) {
        const auto f = l1 > 0 ? buropt::saga<true, T> : buropt::saga<false, T>;
        f(model, penalty<T>(l2, l1), static_cast<T>(step_size), d_, block, state);
      });
    });
  }

  void svrg(nb::handle samples, double step_size, double l2, double l1, nb::handle anchor,
            nb::handle mean, nb::handle x) {
    run([&](auto& model) {
      using T = typename std::remove_cvref_t<decltype(model)>::Number;
      std::vector<Source> seen;
      const T* slopes = vector<T>(anchor, samples_.n(), "anchor", seen);
      const T* gradient = vector<T>(mean, d_, "mean", seen);
      T* point = vector<T>(x, d_, "x", seen);
      for_blocks(samples, false, [&](std::span<const std::int64_t> block, std::int64_t) {
        const auto f = l1 > 0 ? buropt::svrg<true, T> : buropt::svrg<false, T>;
        f(model, penalty<T>(l2, l1), static_cast<T>(step_size), d_, block, slopes, gradient, point);
      });
    });
  }

  void sarah(nb::handle samples, double step_size, double l2, nb::handle x, nb::handle v) {
    run([&](auto& model) {
      using T = typename std::remove_cvref_t<decltype(model)>::Number;
      std::vector<Source> seen;
      T* point = vector<T>(x, d_, "x", seen);
      T* estimate = vector<T>(v, d_, "v", seen);
      for_blocks(samples, true, [&](std::span<const std::int64_t> block, std::int64_t batch) {
        buropt::sarah<T>(model, static_cast<T>(l2), static_cast<T>(step_size), d_, block, batch,
                         point, estimate);
      });
    });
  }

  /// Slopes (n,) and mean gradient (d,) at x, into the given arrays.
  void slopes(nb::handle x, nb::handle slopes, nb::handle mean) {
    run([&](auto& model) {
      using T = typename std::remove_cvref_t<decltype(model)>::Number;
      std::vector<Source> seen;
      const T* point = vector<T>(x, d_, "x", seen);
      T* out = vector<T>(slopes, samples_.n(), "slopes", seen);
      T* gradient = vector<T>(mean, d_, "mean", seen);
      without_gil([&] {
        const std::lock_guard lock(mutex_);
        slopes_at<T>(model, d_, point, out, gradient);
      });
    });
  }

 private:
  template <class F>
  void run(const F& f) {
    std::visit(
        [&](auto& model) {
          BUROPT_ASSERT(model != nullptr);
          f(*model);
        },
        model_);
  }

  /// The memory of an array of the call, apart from the data and from the others.
  template <class T>
  T* vector(nb::handle array, std::int64_t size, const char* name,
            std::vector<Source>& others) const {
    std::byte* data = write_array(array, kDTypeOf<T>, Shape{size}, name);
    refuse_overlap(name, data, size * size_of(dtype_), samples_.sources());
    refuse_overlap(name, data, size * size_of(dtype_), others);
    others.push_back({name, data, size * size_of(dtype_)});
    return reinterpret_cast<T*>(data);
  }

  template <class T>
  static Penalty<T> penalty(double l2, double l1) {
    return {static_cast<T>(l2), static_cast<T>(l1)};
  }

  /// Calls f with the samples of some steps at a time, and how many belong to a step; what it has
  /// done is complete after every block.
  template <class F>
  void for_blocks(nb::handle samples, bool in_batches, const F& f) {
    nb::object holder;
    Shape shape;
    const std::int64_t* list = read_integers(samples, shape, holder, "idx");
    if (shape.rank() != 1 && !(in_batches && shape.rank() == 2)) {
      raise(ErrorKind::value, "idx must have shape (steps,)%s, got %s",
            in_batches ? " or (steps, b)" : "", shape.str().c_str());
    }
    if (shape.size() == 0) return;
    samples_.check_range(list, shape.size(), "idx");
    const std::int64_t batch = shape.rank() == 2 ? shape[1] : 1;
    for (std::int64_t begin = 0; begin < shape[0]; begin += kBlock) {
      const std::int64_t steps = std::min(kBlock, shape[0] - begin);
      const std::span<const std::int64_t> block(list + begin * batch,
                                                static_cast<std::size_t>(steps * batch));
      without_gil([&] {
        const std::lock_guard lock(mutex_);
        f(block, batch);
      });
      if (PyErr_CheckSignals() != 0) throw nb::python_error();
    }
  }

  DType dtype_;
  std::int64_t d_;
  Samples samples_;
  std::mutex mutex_;  ///< a model has one set of registers
  std::variant<std::unique_ptr<LinearModel<float>>, std::unique_ptr<LinearModel<double>>> model_;
};

}  // namespace

void bind_inner(nb::module_& m) {
  nb::class_<LinearLoops>(m, "LinearLoops",
                          "Steps of stochastic methods on a linear model over sparse rows.")
      .def(nb::init<const Graph&, const std::vector<std::pair<std::string, std::int32_t>>&,
                    const nb::list&, const nb::list&, std::int64_t>(),
           "graph"_a, "sources"_a, "dense"_a, "csr"_a, "n_samples"_a)
      .def_prop_ro("applies", &LinearLoops::applies)
      .def("saga", &LinearLoops::saga, "samples"_a, "step_size"_a, "l2"_a, "l1"_a, "x"_a, "table"_a,
           "mean"_a)
      .def("svrg", &LinearLoops::svrg, "samples"_a, "step_size"_a, "l2"_a, "l1"_a, "anchor"_a,
           "mean"_a, "x"_a)
      .def("sarah", &LinearLoops::sarah, "samples"_a, "step_size"_a, "l2"_a, "x"_a, "v"_a)
      .def("slopes", &LinearLoops::slopes, "x"_a, "slopes"_a, "mean"_a);
}

}  // namespace buropt
