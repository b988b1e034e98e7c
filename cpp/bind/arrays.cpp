#include "bind/arrays.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

namespace buropt {
namespace {

std::string type_of_object(nb::handle object) {
  const nb::object name = object.type().attr("__name__");
  return nb::str(name).c_str();
}

nb::object dtype_object(DType dtype) {
  static PyObject* const float32 =
      nb::module_::import_("numpy").attr("dtype")("float32").release().ptr();
  static PyObject* const float64 =
      nb::module_::import_("numpy").attr("dtype")("float64").release().ptr();
  return nb::borrow(dtype == DType::float32 ? float32 : float64);
}

std::string dtype_name(nb::handle array) {
  const nb::object dtype = array.attr("dtype");
  return nb::str(dtype).c_str();
}

std::string dtype_kind(nb::handle array) {
  const nb::object kind = array.attr("dtype").attr("kind");
  return nb::str(kind).c_str();
}

template <class T, class Array>
bool is_plain(const Array& array) {
  if (array.dtype() != nb::dtype<T>()) return false;
  if (array.size() == 0) return true;  // NumPy gives empty arrays strides of 0
  if (reinterpret_cast<std::uintptr_t>(array.data()) % sizeof(T) != 0) return false;
  std::int64_t expected = 1;
  for (std::size_t axis = array.ndim(); axis-- > 0;) {
    if (array.shape(axis) != 1 && array.stride(axis) != expected) return false;
    expected *= static_cast<std::int64_t>(array.shape(axis));
  }
  return true;
}

template <class Array>
Shape shape_of(const Array& array) {
  Shape shape;
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
    shape.push_back(static_cast<std::int64_t>(array.shape(axis)));
  }
  return shape;
}

using ReadArray = nb::ndarray<nb::ro, nb::device::cpu>;

bool is_exactly_ndarray(nb::handle object) {
  static PyObject* const ndarray = numpy_function("ndarray").release().ptr();
  return reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())) == ndarray;
}

/// The object as numpy.asarray gives it. Subclasses that mean something else than their numbers are
/// refused.
nb::object as_ndarray(nb::handle object, const char* argument) {
  const nb::object masked = nb::module_::import_("numpy.ma").attr("MaskedArray");
  if (nb::isinstance(object, masked)) {
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
  ReadArray array;
  if (!is_exactly_ndarray(object) || !nb::try_cast(object, array, false)) return false;
  if (!is_plain<T>(array)) return false;
  shape = shape_of(array);
  data = static_cast<const T*>(array.data());
  return true;
}

}  // namespace

nb::object numpy_function(const char* name) { return nb::module_::import_("numpy").attr(name); }

nb::object empty_array(const Shape& shape, DType dtype) {
  static PyObject* const empty = numpy_function("empty").release().ptr();
  if (shape.rank() == 1) return nb::borrow(empty)(shape[0], dtype_object(dtype));
  return nb::borrow(empty)(to_tuple(shape), dtype_object(dtype));
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

std::byte* write_array(nb::handle object, DType dtype, const Shape& shape, const char* argument) {
  return dispatch(dtype, [&](auto zero) -> std::byte* {
    using T = decltype(zero);
    nb::ndarray<nb::device::cpu> array;
    if (!nb::ndarray_check(object)) {
      raise(ErrorKind::type, "%s must be a writeable NumPy array, got %s", argument,
            type_of_object(object).c_str());
    }
    if (!nb::cast<bool>(nb::object(object.attr("flags").attr("writeable")))) {
      raise(ErrorKind::type, "%s is a read-only array; pass a writeable one", argument);
    }
    if (!nb::try_cast(object, array, false)) {
      raise(ErrorKind::type, "%s must be an array of this machine's numbers, got dtype %s",
            argument, dtype_name(object).c_str());
    }
    if (!is_plain<T>(array) || !(shape_of(array) == shape)) {
      raise(
          ErrorKind::value,
          "%s must be a C-contiguous %s array of shape %s, got dtype %s and shape %s; allocate it "
          "with np.empty(%s, np.%s)",
          argument, std::string(name_of(dtype)).c_str(), shape.str().c_str(),
          dtype_name(object).c_str(), shape_of(array).str().c_str(), shape.str().c_str(),
          std::string(name_of(dtype)).c_str());
    }
    return static_cast<std::byte*>(array.data());
  });
}

std::pair<const std::int64_t*, Shape> read_integers(nb::handle object, nb::object& holder,
                                                    const char* argument) {
  Shape shape;
  const std::int64_t* data = nullptr;
  if (read_plain(object, shape, data)) return {data, shape};
  const nb::object plain = as_ndarray(object, argument);
  const std::string kind = dtype_kind(plain);
  const bool is_empty = nb::cast<std::int64_t>(nb::object(plain.attr("size"))) == 0;
  if (kind != "i" && kind != "u" && !is_empty) {
    raise(ErrorKind::type, "%s must be an array of integers, got dtype %s%s", argument,
          dtype_name(plain).c_str(),
          kind == "b" ? "; pass np.flatnonzero(mask) instead of a mask" : "");
  }
  holder = converted(plain, nb::str("int64"));
  read_plain(holder, shape, data);
  if (kind == "u" && std::any_of(data, data + shape.size(), [](auto i) { return i < 0; })) {
    raise(ErrorKind::index, "%s contains a number beyond 2**63 - 1", argument);
  }
  return {data, shape};
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
