// The list of primitives, and elementwise ones alone.
#include <nanobind/stl/string.h>

#include "bind/arrays.h"
#include "bind/gil.h"
#include "bind/topics.h"
#include "ops/op.h"

namespace buropt {
namespace {

using namespace nb::literals;

nb::list list_ops() {
  nb::list result;
  for (const Op& record : all_ops()) {
    nb::dict row;
    row["name"] = std::string(record.name);
    row["doc"] = std::string(record.doc);
    row["arity"] = record.arity;
    row["elementwise"] = record.elementwise;
    row["derived"] = record.derived;
    nb::list domain;
    for (int k = 0; k < std::max(record.arity, 1); ++k) {
      const auto [low, high] = record.domain[std::min<std::size_t>(static_cast<std::size_t>(k), 2)];
      domain.append(nb::make_tuple(low, high));
    }
    row["domain"] = domain;
    nb::list attributes;
    for (const std::string_view name : record.attributes) {
      if (!name.empty()) attributes.append(std::string(name));
    }
    row["attributes"] = attributes;
    result.append(row);
  }
  return result;
}

/// One elementwise primitive by its tile kernel, on contiguous arrays of one shape.
nb::object elementwise(const std::string& name, const nb::args& arrays) {
  const Op& record = op(find_op(name));
  const bool has_attributes = !record.attributes[0].empty();
  if (!record.elementwise || has_attributes || static_cast<int>(arrays.size()) != record.arity) {
    raise(ErrorKind::type,
          "buropt.elementwise: '%s' is not an elementwise primitive of %zu operands", name.c_str(),
          arrays.size());
  }
  Type type;
  const nb::object dtype = arrays[0].attr("dtype");
  type.dtype = dtype_from(nb::str(dtype).c_str());
  Instruction instruction;
  std::vector<nb::object> holders(arrays.size());
  std::vector<std::byte*> buffers;
  for (std::size_t k = 0; k < arrays.size(); ++k) {
    Shape shape;
    buffers.push_back(
        const_cast<std::byte*>(read_array(arrays[k], type.dtype, shape, holders[k], "array")));
    if (k > 0 && !(shape == type.shape)) {
      raise(ErrorKind::value, "buropt.elementwise: shapes %s and %s differ",
            type.shape.str().c_str(), shape.str().c_str());
    }
    type.shape = shape;
    instruction.in.push_back(static_cast<std::int32_t>(k));
  }
  const std::vector<Type> types(arrays.size(), type);
  record.lower({types, type, {}, 1}, instruction);
  nb::object result = empty_array(type.shape, type.dtype);
  instruction.out = static_cast<std::int32_t>(buffers.size());
  buffers.push_back(write_array(result, type.dtype, type.shape, "result"));
  without_gil([&] { instruction.run(instruction, {buffers.data(), 1, nullptr}); });
  return result;
}

}  // namespace

void bind_primitives(nb::module_& m) {
  m.def("ops", list_ops, "The primitives: one dict each.");
  m.def("elementwise", elementwise, "name"_a, "arrays"_a,
        "One elementwise primitive on contiguous arrays of one shape and dtype.");
}

}  // namespace buropt
