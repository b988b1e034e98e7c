// Compressors, and the counter-based randomness that they and the methods draw from.

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "base/philox.h"
#include "bind/arrays.h"
#include "bind/topics.h"
#include "compress/identity.h"
#include "compress/randk.h"
#include "compress/topk.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace buropt {
namespace {

using Array = nb::ndarray<nb::ro, nb::device::cpu>;

std::string shape_text(const Array& array) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < array.ndim(); ++axis) {
    text += (axis > 0 ? ", " : "") + std::to_string(array.shape(axis));
  }
  return text + (array.ndim() == 1 ? ",)" : ")");
}

bool is_contiguous(const Array& array) {
  std::int64_t expected = 1;
  for (std::size_t axis = array.ndim(); axis-- > 0;) {
    if (array.shape(axis) != 1 && array.stride(axis) != expected) return false;
    expected *= static_cast<std::int64_t>(array.shape(axis));
  }
  return true;
}

/// A C-contiguous array of floats, exactly as it came from Python: a copy here would hide a cost
/// that returns every round.
Array read_floats(nb::handle object, DType& dtype, const char* where) {
  Array array;
  if (!nb::try_cast(object, array, false)) {
    raise(ErrorKind::type,
          "%s: x must be a NumPy array of float32 or float64 in native byte order, got %s", where,
          nb::type_name(object.type()).c_str());
  }
  if (array.dtype() == nb::dtype<float>()) {
    dtype = DType::float32;
  } else if (array.dtype() == nb::dtype<double>()) {
    dtype = DType::float64;
  } else {
    const nb::object given = object.attr("dtype");
    raise(ErrorKind::type, "%s: x must be float32 or float64, got %s; pass x.astype(np.float64)",
          where, nb::str(given).c_str());
  }
  if (array.size() > 0 && !is_contiguous(array)) {
    raise(ErrorKind::value, "%s: x must be C-contiguous; pass np.ascontiguousarray(x)", where);
  }
  return array;
}

/// The number of entries as the compressors count them.
std::uint32_t vector_size(std::size_t d, const char* where) {
  if (d == 0 || d > 0xFFFFFFFF) {
    raise(ErrorKind::value, "%s: a vector has 1 to 2**32 - 1 entries, got %zu", where, d);
  }
  return static_cast<std::uint32_t>(d);
}

std::uint32_t worker_number(std::int64_t worker, const char* where) {
  if (worker < 0 || worker >= kServer) {
    raise(ErrorKind::value, "%s: worker must be between 0 and 2**32 - 2, got %lld", where,
          static_cast<long long>(worker));
  }
  return static_cast<std::uint32_t>(worker);
}

template <class C>
void compress(const C& compressor, nb::handle x_object, std::uint64_t seed, std::uint64_t round,
              std::uint32_t purpose, nb::handle out_object,
              nb::ndarray<std::int64_t, nb::c_contig, nb::device::cpu> bits) {
  const std::string place = std::string(C::kName) + ".compress";
  const char* const where = place.c_str();
  DType dtype{};
  const Array x = read_floats(x_object, dtype, where);
  if (x.ndim() != 2) {
    raise(ErrorKind::value, "%s: x must have shape (n_workers, d), got %s%s", where,
          shape_text(x).c_str(), x.ndim() == 1 ? "; for one worker pass x[None, :]" : "");
  }
  const std::size_t n = x.shape(0);
  const std::uint32_t d = vector_size(x.shape(1), where);
  if (n == 0) return;
  std::byte* const out = write_array(out_object, dtype, Shape{static_cast<std::int64_t>(n), d},
                                     (place + ": out").c_str());
  const auto* const data = static_cast<const std::byte*>(x.data());
  if (data < out + x.nbytes() && out < data + x.nbytes()) {
    raise(ErrorKind::value, "%s: out must not overlap x", where);
  }
  if (bits.size() != n) raise(ErrorKind::value, "%s: bits must have shape (n_workers,)", where);
  compressor.kept(d);  // refuses a k that does not fit before anything is written

  const nb::gil_scoped_release release;
  dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    const RandomKey key{seed, round, purpose};
    const auto* const from = reinterpret_cast<const T*>(data);
    auto* const to = reinterpret_cast<T*>(out);
    Scratch<T> scratch;
    for (std::size_t worker = 0; worker < n; ++worker) {
      bits.data()[worker] =
          compress_row(compressor, std::span(from + worker * d, d), key,
                       static_cast<std::uint32_t>(worker), scratch, std::span(to + worker * d, d));
    }
  });
}

template <class C>
nb::bytes encode_row(const C& compressor, nb::handle x_object, std::uint64_t seed,
                     std::uint64_t round, std::uint32_t purpose, std::int64_t worker) {
  const std::string place = std::string(C::kName) + ".encode";
  const char* const where = place.c_str();
  DType dtype{};
  const Array x = read_floats(x_object, dtype, where);
  if (x.ndim() != 1) {
    raise(ErrorKind::value, "%s: x must have shape (d,), got %s", where, shape_text(x).c_str());
  }
  const std::uint32_t d = vector_size(x.shape(0), where);
  const std::uint32_t number = worker_number(worker, where);
  std::vector<std::uint8_t> payload;
  {
    const nb::gil_scoped_release release;
    payload = dispatch(dtype, [&](auto zero) {
      using T = decltype(zero);
      return encode(compressor, std::span(static_cast<const T*>(x.data()), d),
                    RandomKey{seed, round, purpose}, number);
    });
  }
  return nb::bytes(payload.data(), payload.size());
}

/// T is the dtype of the message.
template <class C, class T>
void decode_row(const C& compressor, nb::bytes payload, std::uint64_t seed, std::uint64_t round,
                std::uint32_t purpose, std::int64_t worker,
                nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
  const std::string place = std::string(C::kName) + ".decode";
  const std::uint32_t d = vector_size(out.shape(0), place.c_str());
  const std::uint32_t number = worker_number(worker, place.c_str());
  const std::span bytes(reinterpret_cast<const std::uint8_t*>(payload.c_str()), payload.size());
  const nb::gil_scoped_release release;
  decode(compressor, bytes, RandomKey{seed, round, purpose}, number, std::span(out.data(), d));
}

template <class C>
nb::class_<C> bind_compressor(nb::module_& m, const char* doc) {
  return nb::class_<C>(m, C::kName, doc)
      .def("kept", &C::kept, "d"_a, "How many of d entries a message carries.")
      .def("compress", compress<C>, "x"_a, "seed"_a, "round"_a, "purpose"_a, "out"_a, "bits"_a,
           "Compress the rows of x (n, d) into out (n, d), each row's message size into bits (n,).")
      .def("encode", encode_row<C>, "x"_a, "seed"_a, "round"_a, "purpose"_a, "worker"_a,
           "The bytes of one worker's message for x (d,).")
      .def("decode", decode_row<C, float>, "payload"_a, "seed"_a, "round"_a, "purpose"_a,
           "worker"_a, "out"_a.noconvert(), "Read a message into out (d,).")
      .def("decode", decode_row<C, double>, "payload"_a, "seed"_a, "round"_a, "purpose"_a,
           "worker"_a, "out"_a.noconvert(), "Read a message into out (d,).");
}

void bind_random(nb::module_& m) {
  m.def("philox4x32", &philox4x32, "counter"_a, "key"_a,
        "One block of Philox4x32-10: four words for a counter of four and a key of two.");
  m.def(
      "random_uniform",
      [](std::uint64_t seed, std::uint64_t round, std::uint32_t purpose) {
        return RandomStream({seed, round, purpose}, kServer).uniform();
      },
      "seed"_a, "round"_a, "purpose"_a, "A number in [0, 1), a multiple of 2**-53.");
  m.def(
      "random_integers",
      [](std::uint64_t seed, std::uint64_t round, std::uint32_t purpose, std::int64_t low,
         std::uint64_t count, nb::ndarray<std::int64_t, nb::c_contig, nb::device::cpu> out) {
        const nb::gil_scoped_release release;
        RandomStream stream({seed, round, purpose}, kServer);
        for (std::size_t i = 0; i < out.size(); ++i) {
          out.data()[i] =
              static_cast<std::int64_t>(static_cast<std::uint64_t>(low) + stream.below64(count));
        }
      },
      "seed"_a, "round"_a, "purpose"_a, "low"_a, "count"_a, "out"_a,
      "Fill out with independent integers, uniform on low .. low + count - 1; count >= 1.");
}

}  // namespace

void bind_compress(nb::module_& m) {
  bind_random(m);
  bind_compressor<Identity>(m, "Sends every entry.").def(nb::init<>());
  bind_compressor<RandK>(m, "Sends k random entries, times d / k.")
      .def(
          "__init__",
          [](RandK* self, std::uint32_t k, bool shared_seed) { new (self) RandK{k, shared_seed}; },
          "k"_a, "shared_seed"_a);
  bind_compressor<TopK>(m, "Sends the k entries of largest magnitude.")
      .def("__init__", [](TopK* self, std::uint32_t k) { new (self) TopK{k}; }, "k"_a);
}

}  // namespace buropt
