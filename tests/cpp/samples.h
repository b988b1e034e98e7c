// Data for the programs of the sanitizers: dense, and the larger of its values as sparse rows.
#pragma once

#include <random>
#include <vector>

#include "exec/engine.h"

namespace buropt {

struct Samples {
  static constexpr std::int64_t kCount = 3001;
  static constexpr std::int64_t kDim = 37;

  std::vector<double> dense;
  std::vector<double> labels;
  std::vector<double> values;
  std::vector<std::int32_t> columns;
  std::vector<std::int64_t> row_starts{0};

  Samples() {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> uniform(-1, 1);
    for (std::int64_t i = 0; i < kCount; ++i) {
      for (std::int32_t j = 0; j < kDim; ++j) {
        const double value = uniform(random);
        dense.push_back(value);
        if (value < 0.7) continue;
        values.push_back(value);
        columns.push_back(j);
      }
      row_starts.push_back(static_cast<std::int64_t>(values.size()));
      labels.push_back(uniform(random) < 0 ? -1 : 1);
    }
  }

  /// The features, and then the labels.
  Data data(bool sparse) const {
    Data data;
    data.n_samples = kCount;
    if (!sparse) data.dense.push_back({bytes(dense), kDim});
    data.dense.push_back({bytes(labels), 1});
    if (sparse) data.csr.push_back({bytes(values), columns.data(), row_starts.data()});
    return data;
  }

  static const std::byte* bytes(const std::vector<double>& v) {
    return reinterpret_cast<const std::byte*>(v.data());
  }
};

}  // namespace buropt
