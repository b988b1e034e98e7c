// Slots of a type that Python calls without nanobind in between.
#pragma once

#include <nanobind/nanobind.h>

#include <new>

#include "base/error.h"

namespace buropt {

/// Makes it Python's current exception.
void set_python_error(const Error& error);

/// What f returns, a new reference; exceptions become Python's.
template <class F>
PyObject* without_exceptions(const F& f) noexcept {
  try {
    return f();
  } catch (nanobind::python_error& error) {
    error.restore();
  } catch (const Error& error) {
    set_python_error(error);
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

}  // namespace buropt
