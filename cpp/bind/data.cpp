// Python bindings of the data readers. Arrays own the vectors that the reader filled: no copy.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "bind/gil.h"
#include "bind/topics.h"
#include "data/libsvm.h"

namespace nb = nanobind;

namespace buropt {
namespace {

template <class T>
using Vector = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <class T>
Vector<T> to_array(std::vector<T>&& vector) {
  auto held = std::make_unique<std::vector<T>>(std::move(vector));
  T* data = held->data();
  const std::size_t size = held->size();
  nb::capsule owner(held.get(), [](void* p) noexcept {
    std::unique_ptr<std::vector<T>>(static_cast<std::vector<T>*>(p)).reset();
  });
  static_cast<void>(held.release());
  return Vector<T>(data, {size}, owner);
}

using Parsed = std::tuple<Vector<double>, Vector<std::int64_t>, Vector<std::int32_t>,
                          std::variant<Vector<float>, Vector<double>>, std::int64_t,
                          std::optional<Vector<std::int64_t>>>;

template <class T>
Parsed parse(nb::bytes text, const std::string& name, const LibsvmOptions& options) {
  const std::string_view view(text.c_str(), text.size());
  LibsvmData<T> data;
  without_gil([&] { data = parse_libsvm<T>(view, name, options); });
  std::optional<Vector<std::int64_t>> query_ids;
  if (options.query_id) query_ids = to_array(std::move(data.query_ids));
  return {to_array(std::move(data.labels)),
          to_array(std::move(data.row_starts)),
          to_array(std::move(data.columns)),
          to_array(std::move(data.values)),
          data.n_features,
          std::move(query_ids)};
}

}  // namespace

void bind_data(nb::module_& m) {
  m.def(
      "parse_libsvm",
      [](nb::bytes text, const std::string& name, std::optional<std::int64_t> n_features,
         bool zero_based, bool single_precision, bool query_id) {
        const LibsvmOptions options{zero_based, n_features.value_or(-1), query_id};
        return single_precision ? parse<float>(text, name, options)
                                : parse<double>(text, name, options);
      },
      nb::arg("text"), nb::arg("name"), nb::kw_only(), nb::arg("n_features") = nb::none(),
      nb::arg("zero_based") = false, nb::arg("single_precision") = false,
      nb::arg("query_id") = false,
      "Parse LIBSVM text: (labels, indptr, indices, values, n_features, query ids or None).\n\n"
      "`name` stands for the text in error messages (ValueError).");
}

}  // namespace buropt
