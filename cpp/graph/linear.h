// Generalized linear models: losses phi(a'x) whose gradient is phi'(a'x) a, known by one number.
#pragma once

#include <optional>

#include "graph/graph.h"

namespace buropt {

/// The loss of one sample that depends on the parameters through a product with a row of data
/// alone.
struct LinearLoss {
  std::int32_t features = -1;          ///< number of the input that the row is
  std::vector<std::int32_t> others;    ///< numbers of the other inputs: numbers of the sample
  std::shared_ptr<const Graph> slope;  ///< (a'x, others...) -> phi'; nothing in it is batched
};

/// Reads the first output of a graph whose first input is the parameter vector. Nothing if it is
/// not a linear model, or if a sample has more than one number beside the row of features.
std::optional<LinearLoss> linear_loss(const Graph& graph);

}  // namespace buropt
