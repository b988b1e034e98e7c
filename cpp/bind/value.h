// The Python object of an eager scalar: what value.cpp (life and attributes) and
// value_operators.cpp (arithmetic) share.
//
// A type of CPython's own interface, because an operation on two numbers costs less than a call
// through a binding library. The object is the node: its reference count is the node's, and a node
// holds a reference to each of its operands.
#pragma once

#include <nanobind/nanobind.h>

#include <span>

#include "eager/value.h"

namespace buropt {

struct ValueObject {
  PyObject_HEAD eager::Node node;
  PyObject* label;  // a str, or null for an empty one
  PyObject* op;     // a str: what the constructor was told; null where the node knows itself
  PyObject* weak_references;
};

/// The type, from `bind_value` on.
extern PyTypeObject* value_type;

inline bool is_value(PyObject* object) { return Py_TYPE(object) == value_type; }
inline eager::Node& node_of(PyObject* object) {
  return reinterpret_cast<ValueObject*>(object)->node;
}
inline PyObject* object_of(eager::Node& node) {
  return reinterpret_cast<PyObject*>(reinterpret_cast<char*>(&node) - offsetof(ValueObject, node));
}

/// A new object with a node that has no operands, or null with an error set.
PyObject* new_value(double data);

/// A new object that takes over references to its operands; `b` may be null.
PyObject* new_value(eager::Op op, double data, nanobind::object a, nanobind::object b,
                    double number);

/// Whether an object counts as a number: Python's and NumPy's integers, floats and booleans, but
/// not arrays, strings or complex numbers. Of those that do, `is_integer` tells.
bool is_number(PyObject* object);
bool is_integer(PyObject* object);

/// The slots of arithmetic and comparison.
std::span<const PyType_Slot> value_operator_slots();
/// relu, tanh, exp ...
std::span<const PyMethodDef> value_functions();

}  // namespace buropt
