// _core.Value: life, attributes and type of an eager scalar. Arithmetic is in value_operators.cpp.
#include "bind/value.h"

#include <structmember.h>

#include <array>
#include <vector>

#include "base/error.h"
#include "bind/topics.h"

namespace nb = nanobind;

namespace buropt {

PyTypeObject* value_type = nullptr;

namespace {

using eager::Node;
using eager::Op;

PyTypeObject* numpy_integer = nullptr;
PyTypeObject* numpy_floating = nullptr;
PyTypeObject* numpy_bool = nullptr;

ValueObject& self_of(PyObject* object) { return *reinterpret_cast<ValueObject*>(object); }

/// Reads a number, or returns false with an error set.
bool read_number(PyObject* object, const char* what, double& number) {
  if (!is_number(object)) {
    PyErr_Format(PyExc_TypeError,
                 "buropt.Value: %s must be a number, got %s; make a Value of each number, or use "
                 "bo.grad for a function of arrays",
                 what, Py_TYPE(object)->tp_name);
    return false;
  }
  number = PyFloat_AsDouble(object);
  return !(number == -1.0 && PyErr_Occurred());
}

// ---- Life

void destroy(PyObject* object) {
  ValueObject& self = self_of(object);
  if (self.weak_references != nullptr) PyObject_ClearWeakRefs(object);
  if (self.node.a != nullptr) Py_DECREF(object_of(*self.node.a));
  if (self.node.b != nullptr) Py_DECREF(object_of(*self.node.b));
  Py_XDECREF(self.label);
  Py_XDECREF(self.op);
  PyObject_Free(object);
  Py_DECREF(value_type);
}

/// Destroying a node may leave its operands without references. They are put on a list instead of
/// being destroyed within one another, since a chain may be longer than the stack is deep.
void dealloc(PyObject* object) {
  static bool destroying = false;
  static Node* dying = nullptr;
  if (destroying) {
    node_of(object).link = dying;
    dying = &node_of(object);
    return;
  }
  destroying = true;
  destroy(object);
  while (dying != nullptr) {
    PyObject* next = object_of(*dying);
    dying = dying->link;
    destroy(next);
  }
  destroying = false;
}

/// Value(data, _children=(), _op="", label="").
PyObject* construct(PyObject* data, PyObject* children, PyObject* op, PyObject* label) {
  double number = 0;
  if (!read_number(data, "data", number)) return nullptr;
  std::array<nb::object, 2> operands;
  if (children != nullptr) {
    nb::object list = nb::steal(PySequence_Tuple(children));
    if (!list.is_valid()) return nullptr;
    const Py_ssize_t size = PyTuple_GET_SIZE(list.ptr());
    for (Py_ssize_t k = 0; k < size; ++k) {
      PyObject* child = PyTuple_GET_ITEM(list.ptr(), k);
      if (size > 2 || !is_value(child)) {
        PyErr_Format(PyExc_TypeError,
                     "buropt.Value: _children are at most two Values, got %zd of which number %zd "
                     "is %s; they serve drawings, operations record their own",
                     size, k, Py_TYPE(child)->tp_name);
        return nullptr;
      }
      operands[static_cast<std::size_t>(k)] = nb::borrow(child);
    }
  }
  const bool has_operands = operands[0].is_valid();
  PyObject* made =
      new_value(has_operands ? Op::opaque : Op::leaf, number, operands[0], operands[1], 0);
  if (made == nullptr) return nullptr;
  self_of(made).op = Py_XNewRef(op);
  self_of(made).label = Py_XNewRef(label);
  return made;
}

PyObject* create(PyTypeObject*, PyObject* positional, PyObject* named) {
  static const char* names[] = {"data", "_children", "_op", "label", nullptr};
  PyObject *data = nullptr, *children = nullptr, *op = nullptr, *label = nullptr;
  if (!PyArg_ParseTupleAndKeywords(positional, named, "O|OUU:Value", const_cast<char**>(names),
                                   &data, &children, &op, &label)) {
    return nullptr;
  }
  return construct(data, children, op, label);
}

/// The usual call has one argument; it is spared the tuple.
PyObject* call_type(PyObject*, PyObject* const* arguments, std::size_t count, PyObject* names) {
  const Py_ssize_t n = PyVectorcall_NARGS(count);
  if (n == 1 && names == nullptr) return construct(arguments[0], nullptr, nullptr, nullptr);
  nb::object positional = nb::steal(PyTuple_New(n));
  nb::object named = nb::steal(PyDict_New());
  if (!positional.is_valid() || !named.is_valid()) return nullptr;
  for (Py_ssize_t k = 0; k < n; ++k) {
    PyTuple_SET_ITEM(positional.ptr(), k, Py_NewRef(arguments[k]));
  }
  const Py_ssize_t n_names = names == nullptr ? 0 : PyTuple_GET_SIZE(names);
  for (Py_ssize_t k = 0; k < n_names; ++k) {
    if (PyDict_SetItem(named.ptr(), PyTuple_GET_ITEM(names, k), arguments[n + k]) < 0) {
      return nullptr;
    }
  }
  return create(value_type, positional.ptr(), named.ptr());
}

// ---- Attributes

PyObject* represent(PyObject* object) {
  const Node& node = node_of(object);
  nb::object data = nb::steal(PyFloat_FromDouble(node.data));
  nb::object grad = nb::steal(PyFloat_FromDouble(node.grad));
  if (!data.is_valid() || !grad.is_valid()) return nullptr;
  return PyUnicode_FromFormat("Value(data=%R, grad=%R)", data.ptr(), grad.ptr());
}

PyObject* get_op(PyObject* object, void*) {
  const ValueObject& self = self_of(object);
  if (self.op != nullptr) return Py_NewRef(self.op);
  switch (self.node.op) {
    case Op::leaf:
    case Op::opaque:
      return PyUnicode_FromString("");
    case Op::add:
      return PyUnicode_FromString("+");
    case Op::multiply:
    case Op::quotient:
      return PyUnicode_FromString("*");
    case Op::power:
      return PyUnicode_FromString("**");
    case Op::integer_power:
    case Op::real_power: {
      nb::object exponent =
          nb::steal(self.node.op == Op::integer_power ? PyLong_FromDouble(self.node.number)
                                                      : PyFloat_FromDouble(self.node.number));
      return exponent.is_valid() ? PyUnicode_FromFormat("**%R", exponent.ptr()) : nullptr;
    }
    case Op::relu:
      return PyUnicode_FromString("ReLU");
    case Op::tanh:
      return PyUnicode_FromString("tanh");
    case Op::exp:
      return PyUnicode_FromString("exp");
    case Op::log:
      return PyUnicode_FromString("log");
    case Op::sqrt:
      return PyUnicode_FromString("sqrt");
    case Op::sin:
      return PyUnicode_FromString("sin");
    case Op::cos:
      return PyUnicode_FromString("cos");
    case Op::sigmoid:
      return PyUnicode_FromString("sigmoid");
    case Op::abs:
      return PyUnicode_FromString("abs");
  }
  return PyUnicode_FromString("");
}

/// A constant operand is a number in its node until somebody wants to see it.
bool materialize_constant(Node& node) {
  const bool has_constant =
      node.op == Op::add || node.op == Op::multiply || node.op == Op::quotient;
  if (node.b != nullptr || !has_constant) return true;
  PyObject* constant = new_value(node.number);
  if (constant == nullptr) return false;
  node.b = &node_of(constant);
  node.b->grad = node.number_grad;
  return true;
}

PyObject* get_children(PyObject* object, void*) {
  Node& node = node_of(object);
  nb::object children = nb::steal(PySet_New(nullptr));
  if (!children.is_valid() || !materialize_constant(node)) return nullptr;
  for (Node* child : {node.a, node.b}) {
    if (child != nullptr && PySet_Add(children.ptr(), object_of(*child)) < 0) return nullptr;
  }
  return children.release().ptr();
}

PyObject* get_label(PyObject* object, void*) {
  PyObject* label = self_of(object).label;
  return label != nullptr ? Py_NewRef(label) : PyUnicode_FromString("");
}

int set_label(PyObject* object, PyObject* label, void*) {
  if (label == nullptr || !PyUnicode_Check(label)) {
    PyErr_Format(PyExc_TypeError, "buropt.Value: label is a str, got %s",
                 label != nullptr ? Py_TYPE(label)->tp_name : "nothing (it cannot be deleted)");
    return -1;
  }
  Py_XSETREF(self_of(object).label, Py_NewRef(label));
  return 0;
}

template <double Node::* field>
PyObject* get_number(PyObject* object, void*) {
  return PyFloat_FromDouble(node_of(object).*field);
}
template <double Node::* field>
int set_number(PyObject* object, PyObject* number, void* name) {
  return read_number(number != nullptr ? number : Py_None, static_cast<const char*>(name),
                     node_of(object).*field)
             ? 0
             : -1;
}

// ---- Methods

PyObject* backward(PyObject* object, PyObject*) {
  eager::backward(node_of(object));
  Py_RETURN_NONE;
}

PyObject* pull(PyObject* object, PyObject*) {
  eager::pull(node_of(object));
  Py_RETURN_NONE;
}

PyObject* zero_grad(PyObject* object, PyObject*) {
  node_of(object).grad = 0;
  Py_RETURN_NONE;
}

/// For pickle and copy. A copy of a computed value could not stay in the graph it belongs to.
PyObject* reduce(PyObject* object, PyObject*) {
  const Node& node = node_of(object);
  if (node.op != Op::leaf) {
    PyErr_SetString(PyExc_TypeError,
                    "buropt.Value: a Value that was computed from others cannot be copied or "
                    "pickled, for it would leave its graph; use Value(v.data)");
    return nullptr;
  }
  nb::object op = nb::steal(get_op(object, nullptr));
  nb::object label = nb::steal(get_label(object, nullptr));
  if (!op.is_valid() || !label.is_valid()) return nullptr;
  return Py_BuildValue("O(d()OO)(O{sd})", value_type, node.data, op.ptr(), label.ptr(), Py_None,
                       "grad", node.grad);
}

constexpr const char* kDoc =
    "Value(data, _children=(), _op='', label='')\n--\n\n"
    "A number that remembers how it was computed, with micrograd's interface.\n\n"
    "For functions whose shape changes from call to call; what keeps its shape is faster with\n"
    "`bo.grad`. Operators and methods make a graph, `backward()` adds the derivatives of a Value\n"
    "by all that it was computed from to their `grad`. Numbers are float64, floating-point events\n"
    "raise nothing. `<` and its like compare data, `==` is identity, as is the hash.\n\n"
    "Parameters\n"
    "----------\n"
    "data\n"
    "    The number: of Python or NumPy.\n"
    "_children, _op\n"
    "    At most two Values and a name, for drawings; nothing flows back to `_children`.\n"
    "label\n"
    "    A name, for drawings.\n";

PyMethodDef own_methods[] = {
    {"backward", backward, METH_NOARGS,
     "Set grad to 1 and add the derivatives by all that this was computed from to their grad."},
    {"_backward", pull, METH_NOARGS,
     "Add what grad contributes to the grad of the operands: one step of backward()."},
    {"zero_grad", zero_grad, METH_NOARGS, "Set grad to 0, of this Value alone."},
    {"__reduce__", reduce, METH_NOARGS, nullptr},
};

PyGetSetDef attributes[] = {
    {"data", get_number<&Node::data>, set_number<&Node::data>, "The number.",
     const_cast<char*>("data")},
    {"grad", get_number<&Node::grad>, set_number<&Node::grad>,
     "What has flowed back so far: a sum over calls of backward().", const_cast<char*>("grad")},
    {"label", get_label, set_label, "A name, for drawings.", nullptr},
    {"_prev", get_children, nullptr, "The set of operands.", nullptr},
    {"_op", get_op, nullptr, "The operation, or an empty str.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(ValueObject, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

template <class F>
PyType_Slot slot(int id, F* f) {
  return {id, reinterpret_cast<void*>(f)};
}

}  // namespace

bool is_number(PyObject* object) {
  if (PyFloat_Check(object) || PyLong_Check(object)) return true;
  PyTypeObject* type = Py_TYPE(object);
  return PyType_IsSubtype(type, numpy_integer) || PyType_IsSubtype(type, numpy_floating) ||
         PyType_IsSubtype(type, numpy_bool);
}

bool is_integer(PyObject* object) {
  return PyLong_Check(object) || PyType_IsSubtype(Py_TYPE(object), numpy_integer);
}

PyObject* new_value(Op op, double data, nb::object a, nb::object b, double number) {
  ValueObject* made = PyObject_New(ValueObject, value_type);
  if (made == nullptr) return nullptr;
  made->node = {};
  made->node.op = op;
  made->node.data = data;
  made->node.number = number;
  if (a.is_valid()) made->node.a = &node_of(a.release().ptr());
  if (b.is_valid()) made->node.b = &node_of(b.release().ptr());
  made->label = made->op = made->weak_references = nullptr;
  return reinterpret_cast<PyObject*>(made);
}

PyObject* new_value(double data) { return new_value(Op::leaf, data, {}, {}, 0); }

void bind_value(nb::module_& m) {
  const auto numpy_type = [numpy = nb::module_::import_("numpy")](const char* name) {
    // NumPy is never unloaded; the reference stays for good.
    return reinterpret_cast<PyTypeObject*>(nb::object(numpy.attr(name)).release().ptr());
  };
  numpy_integer = numpy_type("integer");
  numpy_floating = numpy_type("floating");
  numpy_bool = numpy_type("bool_");

  static std::vector<PyMethodDef> methods(own_methods, std::end(own_methods));
  methods.insert(methods.end(), value_functions().begin(), value_functions().end());
  methods.push_back({nullptr, nullptr, 0, nullptr});
  std::vector<PyType_Slot> slots = {
      slot(Py_tp_new, create),         slot(Py_tp_dealloc, dealloc),
      slot(Py_tp_repr, represent),     slot(Py_tp_hash, PyBaseObject_Type.tp_hash),
      {Py_tp_methods, methods.data()}, {Py_tp_getset, attributes},
      {Py_tp_members, members},        {Py_tp_doc, const_cast<char*>(kDoc)},
  };
  slots.insert(slots.end(), value_operator_slots().begin(), value_operator_slots().end());
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"buropt.Value", sizeof(ValueObject), 0, Py_TPFLAGS_DEFAULT, slots.data()};
  nb::object type = nb::steal(PyType_FromSpec(&spec));
  if (!type.is_valid()) nb::raise_python_error();
  value_type = reinterpret_cast<PyTypeObject*>(type.ptr());
  value_type->tp_vectorcall = call_type;
  // NumPy's scalars leave an operation to a Value; arrays come first, and do it element by element.
  type.attr("__array_priority__") = -1.0;
  m.attr("Value") = type;
}

}  // namespace buropt
