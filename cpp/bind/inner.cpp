// _core.LinearLoops: many steps of a stochastic method on a generalized linear model in one call.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <mutex>
#include <variant>

#include "bind/gil.h"
#include "bind/steps.h"
#include "bind/topics.h"
#include "inner/coupled.h"
#include "inner/lazy.h"
#include "inner/scaled.h"
#include "inner/slopes.h"

namespace buropt {
namespace {

using namespace nb::literals;

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
    const auto& rows = sources.at(static_cast<std::size_t>(loss->features) - 1);
    if (rows.first != "csr") return;
    dispatch(dtype_, [&](auto zero) {
      using T = decltype(zero);
      std::vector<const T*> others;
      for (const std::int32_t other : loss->others) {
        const auto source =
            static_cast<std::size_t>(sources.at(static_cast<std::size_t>(other) - 1).second);
        others.push_back(reinterpret_cast<const T*>(samples_.data().dense.at(source).values));
      }
      model_ = LinearModel<T>::make(*loss, samples_.data(),
                                    samples_.data().csr.at(static_cast<std::size_t>(rows.second)),
                                    others);
    });
  }
  LinearLoops(const LinearLoops&) = delete;
  LinearLoops& operator=(const LinearLoops&) = delete;

  bool applies() const {
    return std::visit([](const auto& model) { return model != nullptr; }, model_);
  }

  /// How a call ends a step: the step size, and the penalty's weights.
  struct Rule {
    double step_size;
    double l2;
    double l1;
  };

  /// The lazy state of a call: p and q (d,), the scales (3,), and with l1 the steps made (d,).
  template <class T>
  struct Lazy {
    T* p;
    T* q;
    Scales* scales;
    std::int32_t* made;
  };

  std::int64_t sgd(nb::handle idx, nb::handle weights, double step_size, double l2, double l1,
                   nb::handle p, nb::handle q, nb::handle scales, nb::handle made, double seconds) {
    return corrected<Correction::none>(idx, weights, {step_size, l2, l1}, nb::none(), p, q, scales,
                                       made, seconds);
  }
  std::int64_t svrg(nb::handle idx, nb::handle weights, double step_size, double l2, double l1,
                    nb::handle anchor, nb::handle p, nb::handle q, nb::handle scales,
                    nb::handle made, double seconds) {
    return corrected<Correction::anchor>(idx, weights, {step_size, l2, l1}, anchor, p, q, scales,
                                         made, seconds);
  }
  std::int64_t saga(nb::handle idx, nb::handle weights, double step_size, double l2, double l1,
                    nb::handle table, nb::handle p, nb::handle q, nb::handle scales,
                    nb::handle made, double seconds) {
    return corrected<Correction::table>(idx, weights, {step_size, l2, l1}, table, p, q, scales,
                                        made, seconds);
  }

  std::int64_t sarah(nb::handle idx, double step_size, double l2, nb::handle p, nb::handle q,
                     nb::handle scales, double seconds) {
    return run([&](auto& model) {
      using T = typename std::remove_cvref_t<decltype(model)>::Number;
      const ReadSteps steps(idx, nb::none(), dtype_, samples_);
      const Lazy<T> lazy = read_lazy<T>(p, q, scales, nb::none());
      return locked([&] {
        return recursive_steps<T>(model, d_, steps.steps, step_size, l2, *lazy.scales,
                                  Deadline(seconds), lazy.p, lazy.q);
      });
    });
  }

  /// scales (6,): `CoupledScales`.
  std::int64_t mig(nb::handle idx, nb::handle weights, double theta, double step_size, double mu,
                   double l2, nb::handle anchor, nb::handle w, nb::handle q, nb::handle p,
                   nb::handle u, nb::handle scales, double seconds) {
    static_assert(sizeof(CoupledScales) == 6 * sizeof(double));
    return run([&](auto& model) {
      using T = typename std::remove_cvref_t<decltype(model)>::Number;
      const ReadSteps read(idx, weights, dtype_, samples_);
      const T* slopes = write_as<T>(anchor, Shape{samples_.n()}, "slopes");
      const T *snapshot = write_as<T>(w, Shape{d_}, "w"),
              *constant = write_as<T>(q, Shape{d_}, "q");
      T *point = write_as<T>(p, Shape{d_}, "p"), *sum = write_as<T>(u, Shape{d_}, "u");
      auto* numbers =
          reinterpret_cast<CoupledScales*>(write_as<double>(scales, Shape{6}, "scales"));
      const CoupledRule rule = CoupledRule::make(theta, step_size, mu, l2);
      return locked([&] {
        return coupled_steps<T>(model, d_, read.steps, reinterpret_cast<const T*>(read.weights),
                                rule, *numbers, Deadline(seconds), slopes, snapshot, constant,
                                point, sum);
      });
    });
  }

  /// x (d,) of the state of sgd, svrg and saga.
  void point(double step_size, double l2, double l1, nb::handle p, nb::handle q, nb::handle scales,
             nb::handle made, nb::handle x) {
    run([&](auto& model) {
      using T = typename std::remove_cvref_t<decltype(model)>::Number;
      const Lazy<T> lazy = read_lazy<T>(p, q, scales, l1 > 0 ? made : nb::none());
      T* out = write_as<T>(x, Shape{d_}, "x");
      if (l1 > 0) {
        const LazySteps<T> steps(step_size, l2, l1, lazy.made);
        catch_up<T>(d_, steps, static_cast<std::int32_t>(lazy.scales->since), lazy.p, lazy.q, out);
      } else {
        combine<T>(d_, *lazy.scales, lazy.p, lazy.q, out);
      }
      return 0;
    });
  }
  /// x and v (d,) of the state of sarah.
  void point_and_estimate(nb::handle p, nb::handle q, nb::handle scales, nb::handle x,
                          nb::handle v) {
    run([&](auto& model) {
      using T = typename std::remove_cvref_t<decltype(model)>::Number;
      const Lazy<T> lazy = read_lazy<T>(p, q, scales, nb::none());
      separate<T>(d_, *lazy.scales, lazy.p, lazy.q, write_as<T>(x, Shape{d_}, "x"),
                  write_as<T>(v, Shape{d_}, "v"));
      return 0;
    });
  }

  /// Mean gradient (d,) of slopes (n,).
  void mean_gradient(nb::handle slopes, nb::handle mean) {
    run([&](auto& model) {
      using T = typename std::remove_cvref_t<decltype(model)>::Number;
      const T* numbers = write_as<T>(slopes, Shape{samples_.n()}, "slopes");
      T* out = write_as<T>(mean, Shape{d_}, "mean");
      return locked([&] {
        buropt::mean_gradient<T>(model, d_, numbers, out);
        return 0;
      });
    });
  }

 private:
  template <Correction kind>
  std::int64_t corrected(nb::handle idx, nb::handle weights, const Rule& rule, nb::handle slopes,
                         nb::handle p, nb::handle q, nb::handle scales, nb::handle made,
                         double seconds) {
    return run([&](auto& model) {
      using T = typename std::remove_cvref_t<decltype(model)>::Number;
      const ReadSteps read(idx, weights, dtype_, samples_);
      const Lazy<T> lazy = read_lazy<T>(p, q, scales, rule.l1 > 0 ? made : nb::none());
      T* numbers = slopes.is_none() ? nullptr : write_as<T>(slopes, Shape{samples_.n()}, "slopes");
      const T* w = reinterpret_cast<const T*>(read.weights);
      if (rule.l1 > 0 && read.steps.batch > 1) {
        raise(ErrorKind::value, "a step with an l1 term has one sample, got %lld",
              static_cast<long long>(read.steps.batch));
      }
      return locked([&] {
        const Deadline deadline(seconds);
        if (rule.l1 == 0) {
          return corrected_steps<kind, T>(model, d_, read.steps, w, rule.step_size, rule.l2,
                                          *lazy.scales, deadline, numbers, lazy.p, lazy.q);
        }
        const LazySteps<T> steps(rule.step_size, rule.l2, rule.l1, lazy.made);
        return thresholded_steps<kind, T>(model, d_, read.steps, w, lazy.scales->since, steps,
                                          deadline, numbers, lazy.p, lazy.q);
      });
    });
  }

  template <class F>
  std::int64_t run(const F& f) {
    return std::visit(
        [&](auto& model) -> std::int64_t {
          BUROPT_ASSERT(model != nullptr);
          return f(*model);
        },
        model_);
  }
  template <class F>
  std::int64_t locked(const F& f) {
    std::int64_t result = 0;
    without_gil(mutex_, [&] { result = f(); });
    return result;
  }

  template <class T>
  Lazy<T> read_lazy(nb::handle p, nb::handle q, nb::handle scales, nb::handle made) const {
    static_assert(sizeof(Scales) == 3 * sizeof(double));
    Lazy<T> lazy{write_as<T>(p, Shape{d_}, "p"), write_as<T>(q, Shape{d_}, "q"),
                 reinterpret_cast<Scales*>(write_as<double>(scales, Shape{3}, "scales")), nullptr};
    if (!made.is_none()) lazy.made = write_counts(made, d_, "made");
    return lazy;
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
      .def("sgd", &LinearLoops::sgd, "idx"_a, "weights"_a.none(), "step_size"_a, "l2"_a, "l1"_a,
           "p"_a, "q"_a, "scales"_a, "made"_a, "seconds"_a)
      .def("svrg", &LinearLoops::svrg, "idx"_a, "weights"_a.none(), "step_size"_a, "l2"_a, "l1"_a,
           "anchor"_a, "p"_a, "q"_a, "scales"_a, "made"_a, "seconds"_a)
      .def("saga", &LinearLoops::saga, "idx"_a, "weights"_a.none(), "step_size"_a, "l2"_a, "l1"_a,
           "table"_a, "p"_a, "q"_a, "scales"_a, "made"_a, "seconds"_a)
      .def("sarah", &LinearLoops::sarah, "idx"_a, "step_size"_a, "l2"_a, "p"_a, "q"_a, "scales"_a,
           "seconds"_a)
      .def("mig", &LinearLoops::mig, "idx"_a, "weights"_a.none(), "theta"_a, "step_size"_a, "mu"_a,
           "l2"_a, "anchor"_a, "w"_a, "q"_a, "p"_a, "u"_a, "scales"_a, "seconds"_a)
      .def("point", &LinearLoops::point, "step_size"_a, "l2"_a, "l1"_a, "p"_a, "q"_a, "scales"_a,
           "made"_a, "x"_a)
      .def("point_and_estimate", &LinearLoops::point_and_estimate, "p"_a, "q"_a, "scales"_a, "x"_a,
           "v"_a)
      .def("mean_gradient", &LinearLoops::mean_gradient, "slopes"_a, "mean"_a);
}

}  // namespace buropt
