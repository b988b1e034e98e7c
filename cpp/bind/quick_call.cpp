// _core.QuickPrograms and _core.QuickCall: calls whose arguments a compiled program takes as they
// are go straight to it, without any Python in between.
#include <algorithm>

#include "bind/function.h"
#include "bind/slots.h"
#include "bind/topics.h"

namespace buropt {
namespace {

using namespace nb::literals;

/// What an argument has to be for a program: an array of this dtype and shape, or a float.
class Accepted {
 public:
  /// Nothing for what is neither.
  static std::optional<Accepted> like(PyObject* argument) {
    Accepted result;
    if (PyArray_CheckExact(argument)) {
      const PyArrayObject* array = as_array(argument);
      if (PyArray_NDIM(array) > kMaxRank || PyArray_ISBYTESWAPPED(array)) return std::nullopt;
      if (!PyTypeNum_ISNUMBER(PyArray_TYPE(array)) && !PyTypeNum_ISBOOL(PyArray_TYPE(array))) {
        return std::nullopt;
      }
      result.dtype_ = PyArray_TYPE(array);
      for (int axis = 0; axis < PyArray_NDIM(array); ++axis) {
        result.shape_.push_back(PyArray_DIM(array, axis));
      }
      return result;
    }
    result.scalar_ = Py_TYPE(argument);
    for (const PyTypeObject* type : {&PyFloat_Type, &PyDoubleArrType_Type, &PyFloatArrType_Type}) {
      if (result.scalar_ == type) return result;
    }
    return std::nullopt;
  }

  bool matches(PyObject* argument) const {
    if (scalar_ != nullptr) return Py_TYPE(argument) == scalar_;
    if (!PyArray_CheckExact(argument)) return false;
    const PyArrayObject* array = as_array(argument);
    return PyArray_TYPE(array) == dtype_ && has_shape(array, shape_) &&
           !PyArray_ISBYTESWAPPED(array);
  }

 private:
  PyTypeObject* scalar_ = nullptr;  // of a float; null for an array
  int dtype_ = 0;
  Shape shape_;
};

/// A program and the arguments that it is for.
struct Entry {
  std::vector<Accepted> arguments;
  nb::object run;  ///< run(arguments, out)
  nb::object kept;
  /// If a call is nothing but a run of it; otherwise null.
  const FunctionProgram* program;
  bool is_tuple;   ///< the results come as a tuple, and not as the only one
  bool takes_out;  ///< and the last of them may be written into an array that the caller has
};

/// Whether a program can write its k-th result straight into `out`: plain memory apart from what it
/// reads. (What is not plain among the arguments is copied before.)
bool can_take(PyObject* out, const Entry& entry, PyObject* arguments) {
  if (!PyArray_CheckExact(out) || !entry.takes_out) return false;
  const PyArrayObject* array = as_array(out);
  const Shape& shape = entry.program->out_shape(entry.program->n_outputs() - 1);
  if (shape.rank() == 0 || !has_shape(array, shape)) return false;
  if (PyArray_TYPE(array) != type_number(entry.program->dtype())) return false;
  if (!PyArray_ISWRITEABLE(array) || !is_plain(array)) return false;
  const std::byte* begin = memory_of(array);
  const std::byte* end = begin + PyArray_NBYTES(array);
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(arguments); ++k) {
    PyObject* argument = PyTuple_GET_ITEM(arguments, k);
    if (!PyArray_Check(argument) || !is_plain(as_array(argument))) continue;
    const std::byte* from = memory_of(as_array(argument));
    if (begin < from + PyArray_NBYTES(as_array(argument)) && from < end) return false;
  }
  return true;
}

/// Runs the program; out: None, or an array that it can take.
nb::object evaluate(const Entry& entry, PyObject* arguments, PyObject* out) {
  const FunctionProgram& program = *entry.program;
  const std::size_t n = program.n_outputs();
  Few<double> scalars(n);
  Few<std::byte*> outputs(n);
  Few<nb::object> results(n);
  for (std::size_t k = 0; k < n; ++k) {
    const Shape& shape = program.out_shape(k);
    outputs[k] = reinterpret_cast<std::byte*>(&scalars[k]);
    if (shape.rank() == 0) continue;
    results[k] =
        out != Py_None && k + 1 == n ? nb::borrow(out) : empty_array(shape, program.dtype());
    outputs[k] = memory_of(as_array(results[k].ptr()));
  }
  program.evaluate(PySequence_Fast_ITEMS(arguments), outputs.span());
  for (std::size_t k = 0; k < n; ++k) {
    if (program.out_shape(k).rank() == 0) results[k] = numpy_scalar(outputs[k], program.dtype());
  }
  if (!entry.is_tuple) return results[0];
  nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(n)));
  if (!tuple.is_valid()) throw nb::python_error();
  for (std::size_t k = 0; k < n; ++k) {
    PyTuple_SET_ITEM(tuple.ptr(), static_cast<Py_ssize_t>(k), results[k].release().ptr());
  }
  return tuple;
}

/// The programs of a function, by the arguments that they are for.
class QuickPrograms {
 public:
  void add(const nb::tuple& arguments, nb::object run, nb::object program, bool is_tuple,
           bool takes_out) {
    auto entry = std::make_shared<Entry>();
    for (nb::handle argument : arguments) {
      const auto accepted = Accepted::like(argument.ptr());
      if (!accepted) return;
      entry->arguments.push_back(*accepted);
    }
    if (find(arguments.ptr())) return;
    entry->run = std::move(run);
    entry->program = program.is_none() ? nullptr : nb::cast<const FunctionProgram*>(program);
    entry->kept = std::move(program);
    entry->is_tuple = is_tuple;
    entry->takes_out = takes_out;
    entries_.push_back(std::move(entry));
  }

  void clear() { entries_.clear(); }

  /// Shared, since the list may change during the call.
  std::shared_ptr<const Entry> find(PyObject* arguments) const {
    const auto n = static_cast<std::size_t>(PyTuple_GET_SIZE(arguments));
    for (const auto& entry : entries_) {
      if (entry->arguments.size() != n) continue;
      PyObject* const* items = PySequence_Fast_ITEMS(arguments);
      const auto matches = [](const Accepted& accepted, PyObject* item) {
        return accepted.matches(item);
      };
      if (std::equal(entry->arguments.begin(), entry->arguments.end(), items, matches)) {
        return entry;
      }
    }
    return nullptr;
  }

 private:
  std::vector<std::shared_ptr<const Entry>> entries_;
};

/// A function of arrays: a program where there is one for the arguments, `otherwise` elsewhere.
struct QuickCall {
  nb::object programs_object;
  const QuickPrograms* programs;
  nb::object otherwise;

  QuickCall(nb::object list, nb::object function)
      : programs_object(std::move(list)),
        programs(nb::cast<const QuickPrograms*>(programs_object)),
        otherwise(std::move(function)) {}

  nb::object call(PyObject* arguments, PyObject* named) const {
    PyObject* out = Py_None;
    if (named != nullptr && PyDict_GET_SIZE(named) > 0) {
      static PyObject* const name = PyUnicode_InternFromString("out");
      out = PyDict_GET_SIZE(named) == 1 ? PyDict_GetItemWithError(named, name) : nullptr;
      if (out == nullptr && PyErr_Occurred()) throw nb::python_error();
    }
    const auto entry = out == nullptr ? nullptr : programs->find(arguments);
    if (entry == nullptr) return checked(PyObject_Call(otherwise.ptr(), arguments, named));
    if (entry->program != nullptr && (out == Py_None || can_take(out, *entry, arguments))) {
      return evaluate(*entry, arguments, out);
    }
    return checked(PyObject_CallFunctionObjArgs(entry->run.ptr(), arguments, out, nullptr));
  }

 private:
  static nb::object checked(PyObject* result) {
    if (result == nullptr) throw nb::python_error();
    return nb::steal(result);
  }
};

PyObject* call(PyObject* self, PyObject* arguments, PyObject* named) {
  if (!nb::inst_ready(self)) {
    PyErr_SetString(PyExc_TypeError, "buropt.QuickCall: __init__ was not called");
    return nullptr;
  }
  return without_exceptions(
      [&] { return nb::inst_ptr<QuickCall>(self)->call(arguments, named).release().ptr(); });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  const QuickCall* quick = nb::inst_ptr<QuickCall>(self);
  Py_VISIT(quick->programs_object.ptr());
  Py_VISIT(quick->otherwise.ptr());
  return 0;
}

int clear(PyObject* self) {
  if (nb::inst_ready(self)) nb::inst_ptr<QuickCall>(self)->otherwise = nb::none();
  return 0;
}

PyType_Slot call_slots[] = {{Py_tp_call, reinterpret_cast<void*>(call)},
                            {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                            {Py_tp_clear, reinterpret_cast<void*>(clear)},
                            {0, nullptr}};

}  // namespace

void bind_quick_call(nb::module_& m) {
  nb::class_<QuickPrograms>(m, "QuickPrograms", "Compiled programs by the arguments they are for.")
      .def(nb::init<>())
      .def("add", &QuickPrograms::add, "arguments"_a, "run"_a, "program"_a.none(), "is_tuple"_a,
           "takes_out"_a,
           nb::sig("def add(self, arguments: tuple[typing.Any, ...], "
                   "run: typing.Callable[..., typing.Any], program: Program | None, "
                   "is_tuple: bool, takes_out: bool) -> None"),
           "Adds a program for arguments like these, if they are arrays and floats only.")
      .def("clear", &QuickPrograms::clear);

  nb::class_<QuickCall>(m, "QuickCall", nb::type_slots(call_slots),
                        "A function that is a program for some arguments.")
      .def(nb::init<nb::object, nb::object>(), "programs"_a, "otherwise"_a,
           nb::sig("def __init__(self, programs: QuickPrograms, "
                   "otherwise: typing.Callable[..., typing.Any]) -> None"));
}

}  // namespace buropt
