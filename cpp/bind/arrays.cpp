#define BUROPT_HOLDS_NUMPY_API
#include "bind/arrays.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace buropt {
namespace {

std::string type_of_object(nb::handle object) {
  const nb::object name = object.type().attr("__name__");
  return nb::str(name).c_str();
}

nb::object dtype_object(DType dtype) {
  return nb::steal(reinterpret_cast<PyObject*>(PyArray_DescrFromType(type_number(dtype))));
}

std::string dtype_name(nb::handle array) {
  const nb::object dtype = array.attr("dtype");
  return nb::str(dtype).c_str();
}

std::string dtype_kind(nb::handle array) {
  const nb::object kind = array.attr("dtype").attr("kind");
  return nb::str(kind).c_str();
}

template <class T>
bool holds(const PyArrayObject* array) {
  const int type = PyArray_TYPE(array);
  if constexpr (std::is_same_v<T, float>) return type == NPY_FLOAT32;
  if constexpr (std::is_same_v<T, double>) return type == NPY_FLOAT64;
  // Integers of one size have several numbers.
  return type == NPY_INT64 || (type == NPY_LONGLONG && sizeof(npy_longlong) == sizeof(T));
}

/// Not given back as a value: a copy of what has just been written in parts would wait for them.
void read_shape(const PyArrayObject* array, Shape& shape) {
  shape = Shape();
  for (int axis = 0; axis < PyArray_NDIM(array); ++axis) shape.push_back(PyArray_DIM(array, axis));
}

/// The object as numpy.asarray gives it. Subclasses that mean something else than their numbers are
/// refused.
nb::object as_ndarray(nb::handle object, const char* argument) {
  // Not imported for the question: without the module there is no such array.
  const nb::object loaded = nb::module_::import_("sys").attr("modules");
  const nb::object masked = loaded.attr("get")("numpy.ma");
  if (!masked.is_none() && nb::isinstance(object, masked.attr("MaskedArray"))) {
    raise(ErrorKind::type,
          "%s is a masked array, whose mask would be lost; pass a plain array, for example "
          "a.filled(0)",
          argument);
  }
  try {
    return numpy_function("asarray")(nb::borrow(object));
  } catch (nb::python_error& error) {
    raise(ErrorKind::type, "%s must be an array of numbers, got %s", argument,
          type_of_object(object).c_str());
  }
}

/// A C-contiguous, aligned array of this dtype.
nb::object converted(const nb::object& plain, nb::object dtype) {
  return numpy_function("require")(plain, dtype, "CA");
}

/// Tries the object as it is; false when it needs a conversion.
template <class T>
bool read_plain(nb::handle object, Shape& shape, const T*& data) {
  if (!PyArray_CheckExact(object.ptr())) return false;
  const PyArrayObject* array = as_array(object.ptr());
  if (!holds<T>(array) || !is_plain(array)) return false;
  read_shape(array, shape);
  data = reinterpret_cast<const T*>(memory_of(array));
  return true;
}

}  // namespace

void import_numpy() {
  if (_import_array() < 0) throw nb::python_error();
}

DType dtype_from(const std::string& name) {
  if (name == "float32") return DType::float32;
  if (name == "float64") return DType::float64;
  raise(ErrorKind::type, "buropt computes in float32 or float64, got dtype '%s'", name.c_str());
}

nb::object numpy_function(const char* name) { return nb::module_::import_("numpy").attr(name); }

nb::object empty_array(const Shape& shape, DType dtype) {
  // NumPy only reads the extents.
  PyObject* array =
      PyArray_SimpleNew(shape.rank(), const_cast<npy_intp*>(shape.begin()), type_number(dtype));
  if (array == nullptr) throw nb::python_error();
  return nb::steal(array);
}

nb::object numpy_scalar(const std::byte* value, DType dtype) {
  PyTypeObject* type = dtype == DType::float32 ? &PyFloatArrType_Type : &PyDoubleArrType_Type;
  PyObject* scalar = type->tp_alloc(type, 0);
  if (scalar == nullptr) throw nb::python_error();
  if (dtype == DType::float32) {
    std::memcpy(&reinterpret_cast<PyFloatScalarObject*>(scalar)->obval, value, sizeof(float));
  } else {
    std::memcpy(&reinterpret_cast<PyDoubleScalarObject*>(scalar)->obval, value, sizeof(double));
  }
  return nb::steal(scalar);
}

const std::byte* read_array(nb::handle object, DType dtype, Shape& shape, nb::object& holder,
                            const char* argument) {
  return dispatch(dtype, [&](auto zero) -> const std::byte* {
    using T = decltype(zero);
    const T* data = nullptr;
    if (read_plain(object, shape, data)) return reinterpret_cast<const std::byte*>(data);
    const nb::object plain = as_ndarray(object, argument);
    const std::string kind = dtype_kind(plain);
    if (kind != "f" && kind != "i" && kind != "u") {
      raise(ErrorKind::type, "%s must be an array of real numbers, got dtype %s", argument,
            dtype_name(plain).c_str());
    }
    holder = converted(plain, dtype_object(dtype));
    if (!read_plain(holder, shape, data)) {
      raise(ErrorKind::type, "%s cannot be read as an array", argument);
    }
    return reinterpret_cast<const std::byte*>(data);
  });
}

void check_shape(const char* argument, const Shape& expected, const Shape& given) {
  if (given == expected) return;
  raise(ErrorKind::value, "%s must have shape %s, got %s", argument, expected.str().c_str(),
        given.str().c_str());
}

std::byte* write_array(nb::handle object, DType dtype, const Shape& shape, const char* argument) {
  if (!PyArray_Check(object.ptr())) {
    raise(ErrorKind::type, "%s must be a writeable NumPy array, got %s", argument,
          type_of_object(object).c_str());
  }
  PyArrayObject* array = as_array(object.ptr());
  if (!PyArray_ISWRITEABLE(array)) {
    raise(ErrorKind::type, "%s is a read-only array; pass a writeable one", argument);
  }
  const int type = PyArray_TYPE(array);
  if (PyArray_ISBYTESWAPPED(array) || !(PyTypeNum_ISNUMBER(type) || PyTypeNum_ISBOOL(type))) {
    raise(ErrorKind::type, "%s must be an array of this machine's numbers, got dtype %s", argument,
          dtype_name(object).c_str());
  }
  if (type != type_number(dtype) || !is_plain(array) || !has_shape(array, shape)) {
    Shape given;
    read_shape(array, given);
    raise(ErrorKind::value,
          "%s must be a C-contiguous %s array of shape %s, got dtype %s and shape %s; allocate it "
          "with np.empty(%s, np.%s)",
          argument, std::string(name_of(dtype)).c_str(), shape.str().c_str(),
          dtype_name(object).c_str(), given.str().c_str(), shape.str().c_str(),
          std::string(name_of(dtype)).c_str());
  }
  return memory_of(array);
}

const std::int64_t* read_integers(nb::handle object, Shape& shape, nb::object& holder,
                                  const char* argument) {
  const std::int64_t* data = nullptr;
  if (read_plain(object, shape, data)) return data;
  const nb::object plain = as_ndarray(object, argument);
  const std::string kind = dtype_kind(plain);
  const bool is_empty = nb::cast<std::int64_t>(nb::object(plain.attr("size"))) == 0;
  if (kind != "i" && kind != "u" && !is_empty) {
    raise(ErrorKind::type, "%s must be an array of integers, got dtype %s%s", argument,
          dtype_name(plain).c_str(),
          kind == "b"                         ? "; pass np.flatnonzero(mask) instead of a mask"
          : nb::isinstance<nb::slice>(object) ? "; pass np.arange(start, stop) instead of a slice"
                                              : "");
  }
  holder = converted(plain, nb::str("int64"));
  read_plain(holder, shape, data);
  if (kind == "u" && std::any_of(data, data + shape.size(), [](auto i) { return i < 0; })) {
    raise(ErrorKind::index, "%s contains a number beyond 2**63 - 1", argument);
  }
  return data;
}

double to_double(const std::byte* value, DType dtype) {
  return dispatch(dtype, [&](auto typed) {
    std::memcpy(&typed, value, sizeof(typed));
    return static_cast<double>(typed);
  });
}

nb::tuple to_tuple(const Shape& shape) {
  nb::list list;
  for (const std::int64_t extent : shape) list.append(extent);
  return nb::tuple(list);
}

}  // namespace buropt
