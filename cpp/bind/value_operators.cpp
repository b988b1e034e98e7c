// Arithmetic of Value. The nodes are those of micrograd: a difference is a sum with -1 times the
// second operand, a quotient a product with a reciprocal, so that graphs look the same and a second
// backward() accumulates the same. Their values are those of a difference and a quotient.
#include "bind/value.h"

namespace nb = nanobind;

namespace buropt {
namespace {

using eager::Op;

/// One side of an operation: a Value, or a number.
struct Operand {
  PyObject* value = nullptr;
  double number = 0;
  bool known = true;  // false: neither of the two, or an error is set

  explicit Operand(PyObject* object) {
    if (is_value(object)) {
      value = object;
    } else if (PyFloat_CheckExact(object)) {
      number = PyFloat_AS_DOUBLE(object);
    } else if (is_number(object)) {
      number = PyFloat_AsDouble(object);
      known = !(number == -1.0 && PyErr_Occurred());
    } else {
      known = false;
    }
  }

  double data() const { return value != nullptr ? node_of(value).data : number; }
};

PyObject* refuse() {
  if (PyErr_Occurred()) return nullptr;
  Py_RETURN_NOTIMPLEMENTED;
}

PyObject* with_number(Op op, double data, PyObject* a, double number) {
  return new_value(op, data, nb::borrow(a), nb::object(), number);
}

PyObject* with_value(Op op, double data, PyObject* a, PyObject* b) {
  return new_value(op, data, nb::borrow(a), nb::borrow(b), 0);
}

/// add or multiply: which side the number stood on makes no difference.
PyObject* commutative(Op op, const Operand& x, const Operand& y) {
  const double data = eager::evaluate(op, x.data(), y.data());
  if (y.value == nullptr) return with_number(op, data, x.value, y.number);
  if (x.value == nullptr) return with_number(op, data, y.value, x.number);
  return with_value(op, data, x.value, y.value);
}

PyObject* add(PyObject* left, PyObject* right) {
  const Operand x(left), y(right);
  return x.known && y.known ? commutative(Op::add, x, y) : refuse();
}

PyObject* multiply(PyObject* left, PyObject* right) {
  const Operand x(left), y(right);
  return x.known && y.known ? commutative(Op::multiply, x, y) : refuse();
}

PyObject* negative(PyObject* self) {
  return with_number(Op::multiply, -node_of(self).data, self, -1);
}

PyObject* subtract(PyObject* left, PyObject* right) {
  const Operand x(left), y(right);
  if (!x.known || !y.known) return refuse();
  const double data = x.data() - y.data();
  if (y.value == nullptr) return with_number(Op::add, data, x.value, -y.number);
  nb::object minus_y = nb::steal(negative(y.value));
  if (!minus_y.is_valid()) return nullptr;
  if (x.value == nullptr) {
    return new_value(Op::add, data, std::move(minus_y), nb::object(), x.number);
  }
  return new_value(Op::add, data, nb::borrow(x.value), std::move(minus_y), 0);
}

PyObject* divide(PyObject* left, PyObject* right) {
  const Operand x(left), y(right);
  if (!x.known || !y.known) return refuse();
  const double data = x.data() / y.data();
  if (y.value == nullptr) return with_number(Op::quotient, data, x.value, 1 / y.number);
  const double inverse = eager::evaluate(Op::integer_power, y.data(), -1);
  nb::object reciprocal = nb::steal(with_number(Op::integer_power, inverse, y.value, -1));
  if (!reciprocal.is_valid()) return nullptr;
  if (x.value == nullptr) {
    return new_value(Op::quotient, data, std::move(reciprocal), nb::object(), x.number);
  }
  return new_value(Op::quotient, data, nb::borrow(x.value), std::move(reciprocal), 0);
}

PyObject* power(PyObject* left, PyObject* right, PyObject* modulus) {
  const Operand x(left), y(right);
  if (!x.known || !y.known || modulus != Py_None) return refuse();
  if (y.value == nullptr) {
    const Op op = is_integer(right) ? Op::integer_power : Op::real_power;
    return with_number(op, eager::evaluate(op, x.data(), y.number), x.value, y.number);
  }
  nb::object base = x.value != nullptr ? nb::borrow(x.value) : nb::steal(new_value(x.number));
  if (!base.is_valid()) return nullptr;
  const double data = eager::evaluate(Op::power, x.data(), y.data());
  return new_value(Op::power, data, std::move(base), nb::borrow(y.value), 0);
}

PyObject* positive(PyObject* self) { return Py_NewRef(self); }

PyObject* to_float(PyObject* self) { return PyFloat_FromDouble(node_of(self).data); }

/// Order is that of the data; equality and hash are those of the object.
PyObject* compare(PyObject* left, PyObject* right, int op) {
  if (op == Py_EQ || op == Py_NE) Py_RETURN_NOTIMPLEMENTED;
  const Operand x(left), y(right);
  if (!x.known || !y.known) return refuse();
  Py_RETURN_RICHCOMPARE(x.data(), y.data(), op);
}

template <Op op>
PyObject* function(PyObject* self, PyObject* = nullptr) {
  return with_number(op, eager::evaluate(op, node_of(self).data), self, 0);
}
template <Op op>
PyObject* operation(PyObject* self) {
  return function<op>(self);
}

template <class F>
void* slot(F* f) {
  return reinterpret_cast<void*>(f);
}

}  // namespace

std::span<const PyType_Slot> value_operator_slots() {
  static const PyType_Slot slots[] = {
      {Py_nb_add, slot(add)},           {Py_nb_subtract, slot(subtract)},
      {Py_nb_multiply, slot(multiply)}, {Py_nb_true_divide, slot(divide)},
      {Py_nb_power, slot(power)},       {Py_nb_negative, slot(negative)},
      {Py_nb_positive, slot(positive)}, {Py_nb_absolute, slot(operation<Op::abs>)},
      {Py_nb_float, slot(to_float)},    {Py_tp_richcompare, slot(compare)},
  };
  return slots;
}

std::span<const PyMethodDef> value_functions() {
  static const PyMethodDef functions[] = {
      {"relu", function<Op::relu>, METH_NOARGS, "max(0, x); the slope at 0 is 0."},
      {"tanh", function<Op::tanh>, METH_NOARGS, "The hyperbolic tangent."},
      {"exp", function<Op::exp>, METH_NOARGS, "e to the power x."},
      {"log", function<Op::log>, METH_NOARGS, "The natural logarithm."},
      {"sqrt", function<Op::sqrt>, METH_NOARGS, "The square root."},
      {"sin", function<Op::sin>, METH_NOARGS, "The sine of radians."},
      {"cos", function<Op::cos>, METH_NOARGS, "The cosine of radians."},
      {"sigmoid", function<Op::sigmoid>, METH_NOARGS, "1 / (1 + exp(-x))."},
  };
  return functions;
}

}  // namespace buropt
