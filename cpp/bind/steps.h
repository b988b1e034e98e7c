// The samples of the steps of an inner loop, as Python gives them.
#pragma once

#include <nanobind/ndarray.h>

#include "bind/arrays.h"
#include "bind/samples.h"
#include "inner/steps.h"

namespace buropt {

/// idx (steps,) or (steps, b), weights of the same shape or None; both stay alive with it.
class ReadSteps {
 public:
  ReadSteps(nb::handle idx, nb::handle weights, DType dtype, const Samples& samples) {
    Shape shape;
    const std::int64_t* list = read_integers(idx, shape, idx_holder_, "idx");
    if (shape.rank() < 1 || shape.rank() > 2 || shape.size() == 0) {
      raise(ErrorKind::value, "idx must have shape (steps,) or (steps, b), got %s",
            shape.str().c_str());
    }
    samples.check_range(list, shape.size(), "idx");
    steps = {list, shape[0], shape.rank() == 2 ? shape[1] : 1};
    if (weights.is_none()) return;
    Shape given;
    this->weights = read_array(weights, dtype, given, weight_holder_, "weights");
    if (!(given == shape)) {
      raise(ErrorKind::value, "weights must have the shape of idx, %s, got %s", shape.str().c_str(),
            given.str().c_str());
    }
  }

  Steps steps{};
  const std::byte* weights = nullptr;

 private:
  nb::object idx_holder_;
  nb::object weight_holder_;
};

/// The memory of an int32 array (size,) that is changed in place.
inline std::int32_t* write_counts(nb::handle object, std::int64_t size, const char* name) {
  nb::ndarray<std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> array;
  if (!nb::try_cast(object, array) || static_cast<std::int64_t>(array.size()) != size) {
    raise(ErrorKind::value, "%s must be a C-contiguous int32 array of shape (%lld,)", name,
          static_cast<long long>(size));
  }
  return array.data();
}

}  // namespace buropt
