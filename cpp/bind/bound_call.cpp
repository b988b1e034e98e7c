// _core.BoundCall: an evaluator's call on fixed arrays.
#include "bind/evaluator.h"
#include "bind/slots.h"
#include "bind/topics.h"

namespace buropt {
namespace {

using namespace nb::literals;

/// A call on fixed arrays: no conversion, no allocation, no check.
class BoundCall {
 public:
  BoundCall(nb::object evaluator, nb::object x, nb::object g, nb::object weights)
      : evaluator_(nb::cast<const Evaluator&>(evaluator)), kept_{evaluator, x, g, weights} {
    Shape shape;
    nb::object holder;
    x_ = evaluator_.point(x, shape, holder, "x");
    if (holder.is_valid()) {
      raise(
          ErrorKind::type,
          "bind needs x as a C-contiguous %s array, so that its later values are seen; convert it "
          "with np.ascontiguousarray(x, np.%s)",
          std::string(name_of(evaluator_.dtype())).c_str(),
          std::string(name_of(evaluator_.dtype())).c_str());
    }
    batch_.count = evaluator_.n_samples();
    batch_.fixed = kAllSamples;
    batch_.outputs = {value_, nullptr};
    if (evaluator_.has_gradient()) {
      batch_.outputs[kGradient] = write_array(g, evaluator_.dtype(), shape, "g");
      const std::array<Source, 1> read{{{"x", x_, evaluator_.bytes()}}};
      refuse_overlap("g", batch_.outputs[kGradient], evaluator_.bytes(), read);
      refuse_overlap("g", batch_.outputs[kGradient], evaluator_.bytes(),
                     evaluator_.samples().sources());
    }
    if (!weights.is_none()) {
      batch_.weights = evaluator_.samples().read_weights(weights, batch_, weight_holder_);
    }
    scale_ = scale_of(batch_);
  }
  BoundCall(const BoundCall&) = delete;
  BoundCall& operator=(const BoundCall&) = delete;

  double call() const {
    evaluator_.run(x_, scale_, std::span<const Batch>(&batch_, 1));
    return to_double(value_, evaluator_.dtype());
  }

  /// The same as a slot of the type: a call through the binding would take as long as a small
  /// program.
  static PyObject* call_slot(PyObject* self, PyObject* arguments, PyObject* named) {
    if (PyTuple_GET_SIZE(arguments) > 0 || (named != nullptr && PyDict_GET_SIZE(named) > 0)) {
      PyErr_SetString(PyExc_TypeError, "a bound call takes no arguments: it reads the array x");
      return nullptr;
    }
    if (!nb::inst_ready(self)) {
      PyErr_SetString(PyExc_TypeError, "buropt.BoundCall: __init__ was not called");
      return nullptr;
    }
    return without_exceptions(
        [&] { return PyFloat_FromDouble(nb::inst_ptr<BoundCall>(self)->call()); });
  }

 private:
  const Evaluator& evaluator_;
  std::array<nb::object, 4> kept_;
  nb::object weight_holder_;
  const std::byte* x_ = nullptr;
  Batch batch_;
  double scale_ = 1;
  alignas(8) std::byte value_[8] = {};
};

}  // namespace

void bind_bound_call(nb::module_& m) {
  static PyType_Slot slots[] = {{Py_tp_call, reinterpret_cast<void*>(BoundCall::call_slot)},
                                {0, nullptr}};
  nb::class_<BoundCall>(m, "BoundCall", nb::type_slots(slots), "A call on fixed arrays.")
      .def(nb::init<nb::object, nb::object, nb::object, nb::object>(), "evaluator"_a, "x"_a,
           "g"_a.none(), "weights"_a.none())
      .def(
          "__reduce__",
          [](const BoundCall&) -> nb::object {
            raise(ErrorKind::type,
                  "a bound call cannot be pickled or copied: it works on two arrays of this "
                  "process. Pickle the oracle, and call its bind(x, g) where the copy is used.");
          },
          nb::sig("def __reduce__(self) -> typing.NoReturn"));
}

}  // namespace buropt
