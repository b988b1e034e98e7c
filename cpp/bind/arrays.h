// NumPy arrays at the boundary: shapes in, fresh arrays out, errors that name the argument.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "base/error.h"
#include "bind/numpy.h"

namespace buropt {

namespace nb = nanobind;

/// Raises for a name that there is not.
DType dtype_from(const std::string& name);

/// A function of the numpy module.
nb::object numpy_function(const char* name);

/// The object as a C-contiguous array of this dtype; converts (numpy.ascontiguousarray) only when
/// it is not one already. `holder` keeps a converted array alive.
const std::byte* read_array(nb::handle object, DType dtype, Shape& shape, nb::object& holder,
                            const char* argument);

/// Raises unless the shape of an argument is the one expected.
void check_shape(const char* argument, const Shape& expected, const Shape& given);

/// The memory of an out= array: C-contiguous, writeable, exactly this dtype and shape.
std::byte* write_array(nb::handle object, DType dtype, const Shape& shape, const char* argument);

/// The same two for an array whose shape and number type are known.
template <class T>
const T* read_as(nb::handle object, const Shape& expected, nb::object& holder,
                 const char* argument) {
  Shape shape;
  const std::byte* data = read_array(object, kDTypeOf<T>, shape, holder, argument);
  check_shape(argument, expected, shape);
  return reinterpret_cast<const T*>(data);
}
template <class T>
T* write_as(nb::handle object, const Shape& shape, const char* argument) {
  return reinterpret_cast<T*>(write_array(object, kDTypeOf<T>, shape, argument));
}

/// Contiguous integers as int64; holder as above.
const std::int64_t* read_integers(nb::handle object, Shape& shape, nb::object& holder,
                                  const char* argument);

/// The number at this address.
double to_double(const std::byte* value, DType dtype);

/// A tuple of Python ints.
nb::tuple to_tuple(const Shape& shape);

}  // namespace buropt
