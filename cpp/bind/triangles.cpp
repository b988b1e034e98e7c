// Products and systems of symmetric matrices that are packed triangles (math/triangle.h).
#include <nanobind/ndarray.h>

#include <vector>

#include "base/error.h"
#include "bind/gil.h"
#include "bind/topics.h"
#include "math/cholesky.h"
#include "math/triangle.h"
#include "math/triangular.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace buropt {
namespace {

/// out = (A + shift I)^-1 b for the packed triangle of A, by Cholesky's factorization; NaN if the
/// matrix is not positive definite.
template <class T>
void solve_triangle(const nb::ndarray<const T, nb::ndim<1>, nb::c_contig>& triangle, double shift,
                    nb::ndarray<T, nb::ndim<1>, nb::c_contig> x) {
  const auto d = static_cast<std::int64_t>(x.shape(0));
  if (static_cast<std::int64_t>(triangle.shape(0)) != triangle_size(d)) {
    raise(ErrorKind::value, "a triangle of (%lld, %lld) has %lld entries, got %zu",
          static_cast<long long>(d), static_cast<long long>(d),
          static_cast<long long>(triangle_size(d)), triangle.shape(0));
  }
  without_gil([&] {
    std::vector<T> a(static_cast<std::size_t>(2 * d * d));
    T* factor = a.data() + d * d;
    unpack_lower(triangle.data(), d, static_cast<T>(shift), a.data());
    cholesky(a.data(), d, factor);
    solve_lower(Triangle<T>{factor, d}, x.data(), 1);
    solve_lower_transposed(Triangle<T>{factor, d}, x.data(), 1);
  });
}

/// out (k, d): the matrices of k triangles times x.
template <class T>
void triangle_products(const nb::ndarray<const T, nb::ndim<2>, nb::c_contig>& triangles,
                       const nb::ndarray<const T, nb::ndim<1>, nb::c_contig>& x,
                       nb::ndarray<T, nb::ndim<2>, nb::c_contig> out) {
  const std::size_t d = x.shape(0);
  const auto size = static_cast<std::size_t>(triangle_size(static_cast<std::int64_t>(d)));
  if (triangles.shape(1) != size || out.shape(0) != triangles.shape(0) || out.shape(1) != d) {
    raise(ErrorKind::value, "triangles must have shape (k, %zu), and out (k, %zu)", size, d);
  }
  without_gil([&] {
    for (std::size_t k = 0; k < out.shape(0); ++k) {
      triangle_times(triangles.data() + k * size, static_cast<std::int64_t>(d), x.data(),
                     out.data() + k * d);
    }
  });
}

template <class T>
void bind_triangles_of(nb::module_& m) {
  m.def("solve_triangle", solve_triangle<T>, "triangle"_a.noconvert(), "shift"_a, "x"_a.noconvert(),
        "x <- (A + shift I)^-1 x for the packed triangle of A; NaN if that is not positive "
        "definite.");
  m.def("triangle_products", triangle_products<T>, "triangles"_a.noconvert(), "x"_a.noconvert(),
        "out"_a.noconvert(), "out (k, d) <- A_k x for the packed triangles of the A_k.");
}

}  // namespace

void bind_triangles(nb::module_& m) {
  bind_triangles_of<float>(m);
  bind_triangles_of<double>(m);
}

}  // namespace buropt
