// with_tables: rows of a table times a matrix, once for each row of the table.
//
// Where samples look rows up in a table of parameters (an embedding) and multiply them with a
// matrix, many samples multiply the same rows. For a batch that is larger than the table there is a
// form of the graph that does it once for every row, before the batch: each sample adds up rows of
// the products (table_rows). The cotangents of the products are summed over the samples first, and
// then multiplied once as well. With e numbers a row and n samples to v rows of the table, v e
// multiply-adds take the place of n e, three times in a gradient.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "graph/graph.h"

namespace buropt {

struct TableForm {
  std::shared_ptr<const Graph> graph;  ///< of the same inputs and outputs
  /// It is worth while for so many samples. The same for all graphs of one loss.
  std::int64_t least_samples;
  /// The tables, by number of the input. They must be finite: a row that nobody looked up takes
  /// part in the gradient, multiplied by 0.
  std::vector<std::int32_t> inputs;
};

/// Nothing if no rows are looked up and multiplied.
std::optional<TableForm> with_tables(const Graph& graph);

}  // namespace buropt
