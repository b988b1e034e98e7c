// Compressors: vectors and their messages.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/error.h"
#include "bind/arrays.h"
#include "bind/gil.h"
#include "bind/topics.h"
#include "compress/bernoulli.h"
#include "compress/block_topk.h"
#include "compress/composition.h"
#include "compress/identity.h"
#include "compress/natural.h"
#include "compress/natural_dithering.h"
#include "compress/permk.h"
#include "compress/power_sgd.h"
#include "compress/randk.h"
#include "compress/random_dithering.h"
#include "compress/randseqk.h"
#include "compress/rank_r.h"
#include "compress/sign.h"
#include "compress/symmetric.h"
#include "compress/terngrad.h"
#include "compress/topk.h"
#include "compress/toplek.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace buropt {
namespace {

using Array = nb::ndarray<nb::ro, nb::device::cpu>;
using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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

nb::object to_numpy(const std::vector<std::int64_t>& numbers) {
  const nb::object array = numpy_function("empty")(numbers.size(), "int64");
  const auto view = nb::cast<nb::ndarray<std::int64_t, nb::c_contig, nb::device::cpu>>(array);
  std::copy(numbers.begin(), numbers.end(), view.data());
  return array;
}

/// Checks that the compressor can work on vectors of this length.
std::uint32_t checked_dimension(const Compressor& compressor, std::size_t d, const char* where) {
  const std::uint32_t size = vector_size(d, where);
  compressor.check(size);
  return size;
}

void check_worker(const Compressor& compressor, std::uint32_t worker, const char* where) {
  const std::uint32_t together = compressor.n_workers();
  if (together == 0 || worker < together) return;
  raise(ErrorKind::value, "%s: worker must be below n_workers = %u, got %u", where, together,
        worker);
}

std::string place_of(const Compressor& compressor, const char* method) {
  return std::string(compressor.name()) + "." + method;
}

void compress(const Compressor& compressor, nb::handle x_object, std::uint64_t seed,
              std::uint64_t round, std::uint32_t purpose, nb::handle out_object,
              nb::ndarray<std::int64_t, nb::c_contig, nb::device::cpu> bits) {
  const std::string place = place_of(compressor, "compress");
  const char* const where = place.c_str();
  DType dtype{};
  const Array x = read_floats(x_object, dtype, where);
  if (x.ndim() != 2) {
    raise(ErrorKind::value, "%s: x must have shape (n_workers, d), got %s%s", where,
          shape_text(x).c_str(), x.ndim() == 1 ? "; for one worker pass x[None, :]" : "");
  }
  const std::size_t n = x.shape(0);
  const std::uint32_t d = checked_dimension(compressor, x.shape(1), where);
  if (n == 0) return;
  check_workers(compressor, n, where);
  std::byte* const out = write_array(out_object, dtype, Shape{static_cast<std::int64_t>(n), d},
                                     (place + ": out").c_str());
  const auto* const data = static_cast<const std::byte*>(x.data());
  if (data < out + x.nbytes() && out < data + x.nbytes()) {
    raise(ErrorKind::value, "%s: out must not overlap x", where);
  }
  if (bits.size() != n) raise(ErrorKind::value, "%s: bits must have shape (n_workers,)", where);

  dispatch(dtype, [&](auto zero) {
    using T = decltype(zero);
    const auto* const from = reinterpret_cast<const T*>(data);
    auto* const to = reinterpret_cast<T*>(out);
    without_gil([&] {
      Scratch scratch;
      for (std::size_t worker = 0; worker < n; ++worker) {
        const Draw draw{{seed, round, purpose}, static_cast<std::uint32_t>(worker)};
        bits.data()[worker] = compressor.compress(std::span<const T>(from + worker * d, d), draw,
                                                  scratch, std::span<T>(to + worker * d, d));
      }
    });
  });
}

nb::bytes encode(const Compressor& compressor, nb::handle x_object, std::uint64_t seed,
                 std::uint64_t round, std::uint32_t purpose, std::int64_t worker) {
  const std::string place = place_of(compressor, "encode");
  const char* const where = place.c_str();
  DType dtype{};
  const Array x = read_floats(x_object, dtype, where);
  if (x.ndim() != 1) {
    raise(ErrorKind::value, "%s: x must have shape (d,), got %s", where, shape_text(x).c_str());
  }
  const std::uint32_t d = checked_dimension(compressor, x.shape(0), where);
  const Draw draw{{seed, round, purpose}, worker_number(worker, where)};
  check_worker(compressor, draw.worker, where);
  std::vector<std::uint8_t> payload;
  without_gil([&] {
    BitWriter to;
    Scratch scratch;
    dispatch(dtype, [&](auto zero) {
      using T = decltype(zero);
      compressor.encode(std::span<const T>(static_cast<const T*>(x.data()), d), draw, scratch, to);
    });
    payload = to.finish();
  });
  return nb::bytes(payload.data(), payload.size());
}

/// T is the dtype of the message.
template <class T>
void decode(const Compressor& compressor, nb::bytes payload, std::uint64_t seed,
            std::uint64_t round, std::uint32_t purpose, std::int64_t worker,
            nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
  const std::string place = place_of(compressor, "decode");
  const char* const where = place.c_str();
  const std::uint32_t d = checked_dimension(compressor, out.shape(0), where);
  const Draw draw{{seed, round, purpose}, worker_number(worker, where)};
  check_worker(compressor, draw.worker, where);
  BitReader from({reinterpret_cast<const std::uint8_t*>(payload.c_str()), payload.size()});
  bool is_whole = false;
  without_gil([&] {
    Scratch scratch;
    compressor.decode(from, draw, scratch, std::span<T>(out.data(), d));
    is_whole = from.at_end();
  });
  if (is_whole) return;
  raise(ErrorKind::value,
        "%s: the payload goes on after a message of d = %u entries in float%zu; pass the d, dtype "
        "and compressor that it was encoded with",
        where, d, 8 * sizeof(T));
}

/// The entries that workers 0, ..., n - 1 keep: where each worker's begin, and all of them.
nb::tuple choose(const Selector& selector, std::int64_t d, std::int64_t n, std::uint64_t seed,
                 std::uint64_t round, std::uint32_t purpose) {
  const std::string place = place_of(selector, "choose");
  const char* const where = place.c_str();
  const std::uint32_t size = vector_size(d < 0 ? 0 : static_cast<std::size_t>(d), where);
  const std::uint32_t n_workers = worker_number(n, where);
  check_choice(selector, size, n_workers, where);
  Choice choice;
  without_gil([&] { choice = Choice::of(selector, size, n_workers, {seed, round, purpose}); });
  return nb::make_tuple(to_numpy(choice.starts), to_numpy(choice.indices));
}

/// The messages of workers whose vectors have the entries (total,) at the places that they chose:
/// out (n, d), and their sizes in bits (n,).
template <class T>
void send(const Selector& selector, Integers starts, Integers indices,
          nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu> entries,
          nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu> out,
          nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> bits) {
  const std::string place = place_of(selector, "send");
  const std::size_t n = bits.shape(0);
  const std::uint32_t d = checked_dimension(selector, out.shape(1), place.c_str());
  const auto total = static_cast<std::int64_t>(entries.shape(0));
  const std::int64_t* first = starts.data();
  if (out.shape(0) != n || starts.shape(0) != n + 1 || indices.shape(0) != entries.shape(0) ||
      first[0] != 0 || first[n] != total || !std::is_sorted(first, first + n + 1)) {
    raise(ErrorKind::value, "%s: starts, indices and entries are not a choice of %zu workers",
          place.c_str(), n);
  }
  const double scale = selector.scale(d);
  std::fill_n(out.data(), n * d, T(0));
  for (std::size_t i = 0; i < n; ++i) {
    for (std::int64_t j = first[i]; j < first[i + 1]; ++j) {
      const std::int64_t k = indices.data()[j];
      if (k < 0 || k >= d) {
        raise(ErrorKind::index, "%s: there is no entry %lld among %u", place.c_str(),
              static_cast<long long>(k), d);
      }
      out.data()[i * d + static_cast<std::size_t>(k)] = scaled(entries.data()[j], scale);
    }
    const auto n_kept = static_cast<std::uint32_t>(first[i + 1] - first[i]);
    bits.data()[i] = selector.message_bits<T>(n_kept, d);
  }
}

void bind_compressors(nb::module_& m) {
  nb::class_<Compressor>(m, "Compressor",
                         "A map of vectors, and the message that carries its value.")
      .def("check", &Compressor::check, "d"_a, "Raises if it does not fit vectors of d entries.")
      .def("compress", compress, "x"_a, "seed"_a, "round"_a, "purpose"_a, "out"_a, "bits"_a,
           "Compress the rows of x (n, d) into out (n, d), each row's message size into bits (n,).")
      .def("encode", encode, "x"_a, "seed"_a, "round"_a, "purpose"_a, "worker"_a,
           "The bytes of one worker's message for x (d,).")
      .def("decode", decode<float>, "payload"_a, "seed"_a, "round"_a, "purpose"_a, "worker"_a,
           "out"_a.noconvert(), "Read a message into out (d,).")
      .def("decode", decode<double>, "payload"_a, "seed"_a, "round"_a, "purpose"_a, "worker"_a,
           "out"_a.noconvert(), "Read a message into out (d,).");
  nb::class_<Selector, Compressor>(m, "Selector", "A compressor that keeps entries.")
      .def("kept", &Selector::kept, "d"_a, "How many of d entries a message carries, at most.")
      .def(
          "choose", choose, "d"_a, "n_workers"_a, "seed"_a, "round"_a, "purpose"_a,
          "The entries (total,) that workers keep, and where each worker's begin (n_workers + 1,); "
          "of a compressor that does not look at the vector.")
      .def("send", send<float>, "starts"_a, "indices"_a, "entries"_a.noconvert(),
           "out"_a.noconvert(), "bits"_a, "The messages of workers with such a choice of entries.")
      .def("send", send<double>, "starts"_a, "indices"_a, "entries"_a.noconvert(),
           "out"_a.noconvert(), "bits"_a, "The messages of workers with such a choice of entries.");
}

template <class Rule, class... Parameters>
std::shared_ptr<Selector> selector(Parameters... parameters) {
  return std::make_shared<SelectorOf<Rule>>(Rule{parameters...});
}

template <class Rule>
std::shared_ptr<Compressor> quantizer(const Rule& rule) {
  return std::make_shared<QuantizerOf<Rule>>(rule);
}

void bind_selectors(nb::module_& m) {
  using Count = std::uint32_t;
  m.def("identity", &selector<Identity>);
  m.def("rand_k", &selector<RandK, Count, bool, bool>, "k"_a, "scaled"_a, "shared_seed"_a);
  m.def("rand_seq_k", &selector<RandSeqK, Count, bool>, "k"_a, "shared_seed"_a);
  m.def("top_k", &selector<TopK, Count>, "k"_a);
  m.def("top_lek", &selector<TopLEK, Count>, "k"_a);
  m.def("block_top_k", &selector<BlockTopK, Count, Count>, "k"_a, "block_size"_a);
  m.def("perm_k", &selector<PermK, Count>, "n_workers"_a);
  m.def("bernoulli", &selector<Bernoulli, double, bool>, "p"_a, "scaled"_a);
}

void bind_other_compressors(nb::module_& m) {
  nb::enum_<Norm>(m, "Norm")
      .value("one", Norm::one)
      .value("two", Norm::two)
      .value("inf", Norm::inf);
  m.def("natural_compression", [] { return quantizer(NaturalCompression{}); });
  m.def(
      "random_dithering",
      [](std::uint32_t levels) { return quantizer(RandomDithering{{levels, Norm::two}}); },
      "levels"_a);
  m.def("terngrad", [] { return quantizer(TernGrad{}); });
  m.def(
      "natural_dithering",
      [](std::uint32_t levels, Norm norm) { return quantizer(NaturalDithering{{levels, norm}}); },
      "levels"_a, "norm"_a);
  m.def("sign", [] { return quantizer(Sign{}); });
  m.def("scaled_sign", [] { return quantizer(ScaledSign{}); });
  m.def(
      "symmetric_rank_r",
      [](std::uint32_t rank) -> std::shared_ptr<Compressor> {
        return std::make_shared<SymmetricOf<SymmetricRankR>>(rank);
      },
      "rank"_a);
  m.def(
      "symmetric_power_sgd",
      [](std::uint32_t rank) -> std::shared_ptr<Compressor> {
        return std::make_shared<SymmetricOf<SymmetricPowerSGD>>(rank);
      },
      "rank"_a);
  m.def(
      "rank_r",
      [](std::uint32_t rank, std::uint32_t n_rows) -> std::shared_ptr<Compressor> {
        return std::make_shared<LowRankOf<RankR>>(rank, n_rows);
      },
      "rank"_a, "n_rows"_a);
  m.def(
      "power_sgd",
      [](std::uint32_t rank, std::uint32_t n_rows) -> std::shared_ptr<Compressor> {
        return std::make_shared<LowRankOf<PowerSGD>>(rank, n_rows);
      },
      "rank"_a, "n_rows"_a);
  m.def(
      "composition",
      [](std::shared_ptr<Selector> first,
         std::shared_ptr<Compressor> second) -> std::shared_ptr<Compressor> {
        return std::make_shared<Composition>(std::move(first), std::move(second));
      },
      "first"_a, "second"_a);
  m.def(
      "scaled",
      [](std::shared_ptr<Compressor> compressor, double factor) -> std::shared_ptr<Compressor> {
        return std::make_shared<Scaled>(std::move(compressor), factor);
      },
      "compressor"_a, "factor"_a);
}

}  // namespace

void bind_compress(nb::module_& m) {
  bind_compressors(m);
  bind_selectors(m);
  bind_other_compressors(m);
}

}  // namespace buropt
