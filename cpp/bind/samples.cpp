#include "bind/samples.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>

#include <algorithm>

#include "bind/topics.h"
#include "exec/sliced_copy.h"

namespace buropt {

void refuse_overlap(const char* target, const std::byte* begin, std::int64_t bytes,
                    std::span<const Source> sources) {
  for (const Source& source : sources) {
    const auto* from = static_cast<const std::byte*>(source.begin);
    if (begin < from + source.bytes && from < begin + bytes) {
      raise(ErrorKind::value, "%s must not share memory with %s; pass another array", target,
            source.name);
    }
  }
}

InputRole role_from(const std::string& kind, std::int32_t number, std::int64_t offset) {
  InputRole role;
  role.number = number;
  role.offset = offset;
  if (kind == "vector")
    role.kind = InputRole::vector;
  else if (kind == "rows")
    role.kind = InputRole::rows;
  else if (kind == "dense")
    role.kind = InputRole::dense_data;
  else if (kind == "csr")
    role.kind = InputRole::csr_data;
  else if (kind == "scale")
    role.kind = InputRole::scale;
  else if (kind == "weight")
    role.kind = InputRole::weight;
  else
    raise(ErrorKind::value, "buropt: unknown input role '%s'", kind.c_str());
  return role;
}

Samples::Samples(DType dtype, std::int64_t n, const nb::list& dense, const nb::list& csr)
    : dtype_(dtype), n_(n) {
  data_.n_samples = n;
  Shape shape;
  for (nb::handle array : dense) {
    nb::object holder;
    const std::byte* values = read_array(array, dtype_, shape, holder, "data");
    keep(holder.is_valid() ? holder : nb::borrow(array));
    data_.dense.push_back({values, shape.product(1, shape.rank())});
    sources_.push_back({"the data", values, shape.size() * size_of(dtype_)});
  }
  for (nb::handle parts : csr) {
    CsrData rows;
    nb::object value_holder, start_holder;
    rows.values = read_array(parts[0], dtype_, shape, value_holder, "data");
    sources_.push_back({"the data", rows.values, shape.size() * size_of(dtype_)});
    if (all_ones(rows.values, shape.size())) rows.values = nullptr;
    nb::ndarray<const std::int32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> columns;
    if (!nb::try_cast(nb::object(parts[1]), columns, false)) {
      raise(ErrorKind::type, "buropt: the column indices of CSR data must be int32");
    }
    rows.columns = columns.data();
    rows.row_starts = read_integers(parts[2], shape, start_holder, "row starts");
    if (nb::len(parts) > 3) rows.sliced = nb::cast<std::shared_ptr<SlicedCopy>>(parts[3]);
    kept_.insert(kept_.end(), {nb::borrow(parts), value_holder, start_holder});
    data_.csr.push_back(rows);
  }
}

/// Binary features are common; without their values the data are a third as large.
bool Samples::all_ones(const std::byte* values, std::int64_t n) const {
  return dispatch(dtype_, [&](auto zero) {
    using T = decltype(zero);
    const T* v = reinterpret_cast<const T*>(values);
    return std::all_of(v, v + n, [](T value) { return value == T(1); });
  });
}

Batch Samples::pick(nb::handle idx, nb::object& holder) const {
  Batch batch;
  batch.count = n_;
  batch.fixed = kAllSamples;
  if (idx.is_none()) return batch;
  batch.fixed = -1;
  Shape shape;
  const std::int64_t* list = read_integers(idx, shape, holder, "idx");
  if (shape.rank() > 1 || shape.size() == 0) {
    raise(ErrorKind::value, "idx must be a non-empty list of sample numbers, got shape %s",
          shape.str().c_str());
  }
  check_range(list, shape.size(), "idx");
  batch.idx = list;
  batch.count = shape.size();
  return batch;
}

std::vector<Batch> Samples::split(const nb::list& shards) {
  std::vector<Batch> workers;
  for (nb::handle shard : shards) {
    nb::object holder;
    Shape shape;
    const std::int64_t* idx = read_integers(shard, shape, holder, "workers");
    Batch batch;
    batch.fixed = kAllSamples + 1 + static_cast<std::int64_t>(workers.size());
    batch.count = shape.size();
    batch.first = idx[0];
    const bool contiguous =
        idx[batch.count - 1] - idx[0] == batch.count - 1 && std::is_sorted(idx, idx + batch.count);
    if (!contiguous) batch.idx = idx;
    keep(holder.is_valid() ? holder : nb::borrow(shard));
    workers.push_back(batch);
  }
  return workers;
}

const std::byte* Samples::read_weights(nb::handle weights, const Batch& batch,
                                       nb::object& holder) const {
  Shape shape;
  const std::byte* data = read_array(weights, dtype_, shape, holder, "weights");
  if (!(shape == Shape{batch.count})) {
    raise(ErrorKind::value, "weights must have one entry per sample, shape %s, got %s",
          Shape{batch.count}.str().c_str(), shape.str().c_str());
  }
  return data;
}

void Samples::check_range(const std::int64_t* list, std::int64_t n, const char* name) const {
  if (n_ == 0) {
    raise(ErrorKind::value, "%s cannot be given: this oracle was compiled without data", name);
  }
  // As numbers without a sign, negative ones are large.
  const auto is_outside = [&](std::int64_t i) {
    return static_cast<std::uint64_t>(i) >= static_cast<std::uint64_t>(n_);
  };
  if (std::count_if(list, list + n, is_outside) == 0) return;
  const auto [low, high] = std::minmax_element(list, list + n);
  raise(ErrorKind::index, "%s contains %lld, but sample numbers go from 0 to %lld", name,
        static_cast<long long>(*low < 0 ? *low : *high), static_cast<long long>(n_ - 1));
}

void bind_samples(nb::module_& m) {
  nb::class_<SlicedCopy>(m, "SlicedCopy",
                         "What programs over the same CSR array share: copies of it that are made "
                         "when a full batch needs them.")
      .def(nb::init<>());
}

}  // namespace buropt
