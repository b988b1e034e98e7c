// The counter-based randomness that compressors and methods draw from.
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>

#include <cstdint>
#include <vector>

#include "base/error.h"
#include "base/philox.h"
#include "bind/gil.h"
#include "bind/topics.h"
#include "inner/draws.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace buropt {

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
         std::uint64_t count, nb::ndarray<std::int64_t, nb::c_contig, nb::device::cpu> out,
         std::size_t rounds) {
        if (rounds == 0 || count == 0) raise(ErrorKind::value, "rounds and count are at least 1");
        const std::size_t size = out.size() / rounds;
        without_gil([&] {
          for (std::size_t r = 0; r < rounds; ++r) {
            RandomStream stream({seed, round + r, purpose}, kServer);
            for (std::size_t i = 0; i < size; ++i) {
              out.data()[r * size + i] = static_cast<std::int64_t>(static_cast<std::uint64_t>(low) +
                                                                   stream.below64(count));
            }
          }
        });
      },
      "seed"_a, "round"_a, "purpose"_a, "low"_a, "count"_a, "out"_a, "rounds"_a = 1,
      "Fill out with independent integers, uniform on low .. low + count - 1, count >= 1; an equal "
      "part of it from each of the rounds.");
  m.def(
      "random_subsets",
      [](std::uint64_t seed, std::uint64_t round, std::uint32_t purpose, std::int64_t n,
         nb::ndarray<std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu> out) {
        const auto count = static_cast<std::int64_t>(out.shape(0));
        const auto size = static_cast<std::int64_t>(out.shape(1));
        if (size > n) raise(ErrorKind::value, "a subset has at most n numbers");
        without_gil([&] { draw_subsets({seed, round, purpose}, n, size, count, out.data()); });
      },
      "seed"_a, "round"_a, "purpose"_a, "n"_a, "out"_a,
      "Fill the rows of out with uniform subsets of 0 .. n - 1, one for each round.");
  using Doubles = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  nb::class_<Places>(m, "Places", "Ascending ends (n,), among which points are looked up.")
      .def(
          "__init__",
          [](Places* self, const Doubles& ends) {
            if (ends.size() == 0) raise(ErrorKind::value, "there must be an end");
            new (self) Places(std::vector<double>(ends.data(), ends.data() + ends.size()));
          },
          "ends"_a)
      .def("__len__", &Places::size)
      .def_prop_ro("total", &Places::total, "The last of the ends.")
      .def(
          "find",
          [](const Places& self, nb::ndarray<const double, nb::c_contig, nb::device::cpu> points,
             nb::ndarray<std::int64_t, nb::c_contig, nb::device::cpu> out) {
            if (points.size() != out.size())
              raise(ErrorKind::value, "out must be as large as points");
            without_gil([&] {
              self.find(points.data(), static_cast<std::int64_t>(out.size()), out.data());
            });
          },
          "points"_a, "out"_a,
          "For each point, below the total, the first i with ends[i] > point.");
  m.def(
      "random_uniforms",
      [](std::uint64_t seed, std::uint64_t round, std::uint32_t purpose,
         nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
        draw_uniforms({seed, round, purpose}, static_cast<std::int64_t>(out.size()), out.data());
      },
      "seed"_a, "round"_a, "purpose"_a, "out"_a,
      "Fill out with the number in [0, 1) of each round.");
}

}  // namespace buropt
