// _core.QuickMethod: a method of the oracle whose usual calls go straight to an evaluator, without
// any Python in between.
//
// It wraps the method that is written in Python. A call of `grad` without weights goes to the
// evaluator that the object has as `_quick_grad`; any other call, and every call while there is
// none, goes to the wrapped method. Which argument stands where is read off its signature.
#include <Python.h>
#include <structmember.h>

#include <cmath>
#include <cstddef>
#include <optional>

#include "bind/evaluator.h"
#include "bind/slots.h"
#include "bind/topics.h"

namespace buropt {
namespace {

/// What a call may bring.
enum Parameter : std::size_t { kPoint, kStepSize, kIdx, kWeights, kOut, kParameters };
constexpr std::array<const char*, kParameters> kNames{"x", "step_size", "idx", "weights", "out"};

/// The object itself, and null for what a call leaves out.
using Arguments = std::array<PyObject*, kParameters>;

struct QuickMethod {
  PyObject ob_base;
  vectorcallfunc vectorcall;
  PyObject* attributes;  ///< __dict__
  PyObject* function;    ///< the method as it is written in Python
  PyObject* attribute;   ///< where an object has the evaluator
  PyObject* owner;       ///< the class that has the method, or null
  Py_ssize_t slot;       ///< the attribute's place in its objects; 0 if it is no slot
  PyTypeObject* evaluator_type;
  Py_ssize_t n_positions;  ///< of arguments, without the object
  std::array<Parameter, kParameters> by_position;
  std::array<PyObject*, kParameters> names;  ///< interned, by parameter; null for one it lacks

  /// False for a call that is not made like the signature.
  bool read(PyObject* const* values, Py_ssize_t n, PyObject* named, Arguments& given) const {
    if (n > n_positions) return false;
    for (Py_ssize_t k = 0; k < n; ++k) given[by_position[static_cast<std::size_t>(k)]] = values[k];
    const Py_ssize_t n_named = named == nullptr ? 0 : PyTuple_GET_SIZE(named);
    for (Py_ssize_t k = 0; k < n_named; ++k) {
      const auto at = std::find(names.begin(), names.end(), PyTuple_GET_ITEM(named, k));
      if (at == names.end()) return false;
      PyObject*& argument = given[static_cast<std::size_t>(at - names.begin())];
      if (argument != nullptr) return false;
      argument = values[n + k];
    }
    return given[kPoint] != nullptr;
  }

  /// The object's attribute, or nothing.
  nb::object attribute_of(PyObject* object) const {
    if (slot != 0 && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(owner))) {
      return nb::borrow(*reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + slot));
    }
    nb::object found = nb::steal(PyObject_GetAttr(object, attribute));
    if (!found.is_valid()) PyErr_Clear();
    return found;
  }

  /// The object's evaluator, or nothing.
  nb::object evaluator_of(PyObject* object) const {
    nb::object found = attribute_of(object);
    const bool is_evaluator = found.is_valid() && Py_TYPE(found.ptr()) == evaluator_type;
    return is_evaluator ? found : nb::object();
  }

  /// Nothing if the method itself has to answer.
  std::optional<nb::object> call(PyObject* object, const Arguments& given) const {
    const auto argument = [&](Parameter k) {
      return nb::handle(given[k] == nullptr ? Py_None : given[k]);
    };
    if (!argument(kWeights).is_none()) return std::nullopt;
    const nb::object evaluator = evaluator_of(object);
    if (!evaluator.is_valid()) return std::nullopt;
    Evaluator& e = *nb::inst_ptr<Evaluator>(evaluator);
    if (names[kStepSize] == nullptr) {
      return e.evaluate(given[kPoint], argument(kIdx), nb::none(), argument(kOut));
    }
    if (given[kStepSize] == nullptr || !PyFloat_CheckExact(given[kStepSize])) return std::nullopt;
    const double step_size = PyFloat_AS_DOUBLE(given[kStepSize]);
    if (!std::isfinite(step_size)) return std::nullopt;
    e.step(given[kPoint], step_size, argument(kIdx), nb::none());
    return nb::none();
  }
};

QuickMethod& method_of(PyObject* self) { return *reinterpret_cast<QuickMethod*>(self); }

PyObject* vectorcall(PyObject* self, PyObject* const* values, std::size_t flagged,
                     PyObject* named) {
  const QuickMethod& method = method_of(self);
  const Py_ssize_t n = PyVectorcall_NARGS(flagged);
  return without_exceptions([&] {
    Arguments given{};
    if (n > 0 && method.read(values + 1, n - 1, named, given)) {
      if (auto answer = method.call(values[0], given)) return answer->release().ptr();
    }
    return PyObject_Vectorcall(method.function, values, flagged, named);
  });
}

PyObject* bind_to(PyObject* self, PyObject* object, PyObject*) {
  if (object != nullptr) return PyMethod_New(self, object);
  Py_INCREF(self);
  return self;
}

/// __set_name__(owner, name): finds where objects of the class have the attribute, once for all of
/// them.
PyObject* set_name(PyObject* self, PyObject* const* arguments, Py_ssize_t n) {
  if (n != 2 || !PyType_Check(arguments[0])) {
    PyErr_SetString(PyExc_TypeError, "buropt.QuickMethod: __set_name__ takes a class and a name");
    return nullptr;
  }
  QuickMethod& method = method_of(self);
  const nb::object member = nb::steal(PyObject_GetAttr(arguments[0], method.attribute));
  if (!member.is_valid()) PyErr_Clear();
  method.slot = 0;
  if (member.is_valid() && Py_IS_TYPE(member.ptr(), &PyMemberDescr_Type)) {
    const PyMemberDef& slot = *reinterpret_cast<PyMemberDescrObject*>(member.ptr())->d_member;
    if (slot.type == T_OBJECT_EX) method.slot = slot.offset;
  }
  Py_INCREF(arguments[0]);
  Py_XSETREF(method.owner, arguments[0]);
  Py_RETURN_NONE;
}

/// The parameters of a Python function, in order.
void read_signature(const nb::object& function, QuickMethod& method) {
  const nb::object code = function.attr("__code__");
  const auto n = nb::cast<Py_ssize_t>(code.attr("co_argcount"));
  const nb::object variables = code.attr("co_varnames");
  for (Py_ssize_t k = 1; k < n; ++k) {
    const nb::object name = variables[k];
    const auto at = std::find_if(kNames.begin(), kNames.end(),
                                 [&](const char* known) { return nb::str(known).equal(name); });
    if (at == kNames.end()) {
      raise(ErrorKind::value, "buropt.QuickMethod: no evaluator takes an argument %s",
            nb::str(name).c_str());
    }
    const auto parameter = static_cast<Parameter>(at - kNames.begin());
    method.by_position[static_cast<std::size_t>(method.n_positions++)] = parameter;
    method.names[parameter] = PyUnicode_InternFromString(*at);
  }
}

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject* named) {
  PyObject* given = nullptr;
  static const char* keywords[] = {"", nullptr};
  if (!PyArg_ParseTupleAndKeywords(arguments, named, "O:QuickMethod", const_cast<char**>(keywords),
                                   &given)) {
    return nullptr;
  }
  return without_exceptions([&] {
    const nb::object function = nb::borrow(given);
    nb::object self = nb::steal(type->tp_alloc(type, 0));
    if (!self.is_valid()) throw nb::python_error();
    QuickMethod& method = method_of(self.ptr());
    method.vectorcall = vectorcall;
    method.function = nb::object(function).release().ptr();
    const nb::str name(nb::object(function.attr("__name__")));
    method.attribute = PyUnicode_InternFromString((std::string("_quick_") + name.c_str()).c_str());
    method.evaluator_type = reinterpret_cast<PyTypeObject*>(nb::type<Evaluator>().ptr());
    read_signature(function, method);
    // Name, documentation and signature are the function's.
    nb::module_::import_("functools").attr("update_wrapper")(self, function);
    return self.release().ptr();
  });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(method_of(self).attributes);
  Py_VISIT(method_of(self).function);
  Py_VISIT(method_of(self).owner);
  return 0;
}

int clear(PyObject* self) {
  Py_CLEAR(method_of(self).attributes);
  Py_CLEAR(method_of(self).function);
  method_of(self).slot = 0;
  Py_CLEAR(method_of(self).owner);
  return 0;
}

void destroy(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  clear(self);
  Py_CLEAR(method_of(self).attribute);
  for (PyObject*& name : method_of(self).names) Py_CLEAR(name);
  type->tp_free(self);
  Py_DECREF(type);
}

}  // namespace

void bind_quick_method(nb::module_& m) {
  static PyMemberDef members[] = {
      {"__vectorcalloffset__", T_PYSSIZET, offsetof(QuickMethod, vectorcall), READONLY, nullptr},
      {"__dictoffset__", T_PYSSIZET, offsetof(QuickMethod, attributes), READONLY, nullptr},
      {nullptr, 0, 0, 0, nullptr}};
  static PyMethodDef methods[] = {
      {"__set_name__", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(set_name)),
       METH_FASTCALL, nullptr},
      {nullptr, nullptr, 0, nullptr}};
  static PyGetSetDef properties[] = {
      {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
      {nullptr, nullptr, nullptr, nullptr, nullptr}};
  static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                                {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                {Py_tp_descr_get, reinterpret_cast<void*>(bind_to)},
                                {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                                {Py_tp_clear, reinterpret_cast<void*>(clear)},
                                {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                                {Py_tp_members, members},
                                {Py_tp_methods, methods},
                                {Py_tp_getset, properties},
                                {0, nullptr}};
  static PyType_Spec spec{"buropt._core.QuickMethod", static_cast<int>(sizeof(QuickMethod)), 0,
                          // The interpreter looks methods of immutable types up but once.
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_METHOD_DESCRIPTOR |
                              Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_IMMUTABLETYPE,
                          slots};
  const nb::object type = nb::steal(PyType_FromSpec(&spec));
  if (!type.is_valid()) throw nb::python_error();
  m.attr("QuickMethod") = type;
}

}  // namespace buropt
