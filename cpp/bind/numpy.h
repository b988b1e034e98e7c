// NumPy's C interface. Without it a call would spend more time on its arrays than on numbers.
#pragma once

#include <nanobind/nanobind.h>

#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#define PY_ARRAY_UNIQUE_SYMBOL buropt_numpy_api
#ifndef BUROPT_HOLDS_NUMPY_API
#define NO_IMPORT_ARRAY
#endif
#include <numpy/arrayobject.h>
#include <numpy/arrayscalars.h>

#include "base/dtype.h"
#include "base/shape.h"

namespace buropt {

/// Must come before anything else of this file is used.
void import_numpy();

inline PyArrayObject* as_array(PyObject* object) {
  return reinterpret_cast<PyArrayObject*>(object);
}

/// NumPy's number of a dtype.
inline int type_number(DType dtype) { return dtype == DType::float32 ? NPY_FLOAT32 : NPY_FLOAT64; }

/// Whether an array lies in memory as a kernel reads it: C-contiguous, aligned, native byte order.
inline bool is_plain(const PyArrayObject* array) { return PyArray_ISCARRAY_RO(array); }

inline bool has_shape(const PyArrayObject* array, const Shape& shape) {
  return PyArray_NDIM(array) == shape.rank() &&
         std::equal(shape.begin(), shape.end(), PyArray_DIMS(array));
}

inline std::byte* memory_of(const PyArrayObject* array) {
  return static_cast<std::byte*>(PyArray_DATA(array));
}

/// A new array, its numbers not set.
nanobind::object empty_array(const Shape& shape, DType dtype);

/// A NumPy scalar.
nanobind::object numpy_scalar(const std::byte* value, DType dtype);

}  // namespace buropt
