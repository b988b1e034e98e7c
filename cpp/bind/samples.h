// The data of an oracle as Python gave them, and the choice of samples that a call makes.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "bind/arrays.h"
#include "exec/engine.h"

namespace buropt {

/// Number of the batch of all samples; the workers' follow (Batch::fixed).
inline constexpr std::int64_t kAllSamples = 0;

/// Memory that a call reads; what it writes must not lie there.
struct Source {
  const char* name;
  const void* begin;
  std::int64_t bytes;
};

void refuse_overlap(const char* target, const std::byte* begin, std::int64_t bytes,
                    std::span<const Source> sources);

/// Raises for a kind that there is not.
InputRole role_from(const std::string& kind, std::int32_t number, std::int64_t offset);

class Samples {
 public:
  /// dense: arrays; csr: (values, columns, row starts), and a SlicedCopy where other programs
  /// have the same. All are kept alive, none is copied.
  Samples(DType dtype, std::int64_t n, const nb::list& dense, const nb::list& csr);

  std::int64_t n() const { return n_; }
  const Data& data() const { return data_; }
  std::span<const Source> sources() const { return sources_; }
  void keep(nb::object object) { kept_.push_back(std::move(object)); }

  /// The samples that idx lists, or all.
  Batch pick(nb::handle idx, nb::object& holder) const;
  /// A batch for each worker's list of samples, which is kept alive.
  std::vector<Batch> split(const nb::list& shards);
  /// One weight per sample of the batch.
  const std::byte* read_weights(nb::handle weights, const Batch& batch, nb::object& holder) const;
  /// Raises unless all n numbers of the list are samples.
  void check_range(const std::int64_t* list, std::int64_t n, const char* name) const;

 private:
  bool all_ones(const std::byte* values, std::int64_t n) const;

  DType dtype_;
  std::int64_t n_;
  Data data_;
  std::vector<nb::object> kept_;
  std::vector<Source> sources_;
};

}  // namespace buropt
