#include "graph/tables.h"

#include <algorithm>
#include <utility>

#include "graph/builder.h"

namespace buropt {
namespace {

using Extents = std::vector<std::int64_t>;

/// Adding up a row costs as much as multiplying so many numbers of a row of the table.
constexpr std::int64_t kRowCost = 6;
/// Tables have to save a fifth: so many percent of the multiplications that they need.
constexpr std::int64_t kGain = 125;
/// A long sum over rows of a matrix is made of up to so many parts of so many rows or more.
constexpr std::int64_t kMostParts = 16;
constexpr std::int64_t kPartRows = 256;
/// Products of more elements are not kept.
constexpr std::int64_t kMostElements = 1 << 22;

/// Rows of a table of parameters that every sample looks up.
struct Lookup {
  NodeId table;
  NodeId indices;
  std::int64_t rows, width;  ///< of the table
};

/// A product of looked-up rows, t side by side, with a matrix; a sample has m of them.
struct Sizes {
  std::int64_t m, t, v, e, n;

  /// For how many samples the products of all rows of the table cost less; 0 for none.
  std::int64_t least_samples() const {
    if (e <= kRowCost || t * v * n > kMostElements) return 0;
    return kGain * v * e / (100 * m * (e - kRowCost)) + 1;
  }
};

class Tabler {
 public:
  explicit Tabler(const Graph& graph) : g_(graph), b_(dtype_of(graph)) {}

  std::optional<TableForm> run() {
    for (const Node& node : g_.nodes) {
      if (const auto found = lookup(node)) lookups_.push_back(*found);
    }
    if (lookups_.empty()) return std::nullopt;
    for (std::size_t i = 0; i < g_.nodes.size(); ++i) {
      here_.push_back(node_of(static_cast<NodeId>(i)));
    }
    if (least_ == 0) return std::nullopt;
    std::vector<NodeId> outputs;
    for (const NodeId output : g_.outputs) outputs.push_back(here(output));
    return TableForm{b_.build(outputs, g_.output_names), least_, inputs_};
  }

 private:
  static DType dtype_of(const Graph& graph) {
    return graph.nodes.empty() ? DType::float64 : graph.nodes.front().type.dtype;
  }
  static bool flag(const Node& node, int list) {
    return !node.attributes[list].empty() && node.attributes[list][0] != 0;
  }
  NodeId here(NodeId node) const { return here_[static_cast<std::size_t>(node)]; }
  const Type& type(NodeId node) const { return g_.node(node).type; }

  NodeId node_of(NodeId id) {
    static const OpId matmul = find_op("matmul");
    static const OpId sum = find_op("matmul_batch_sum");
    static const OpId vjp = find_op("take_vjp_batch_sum");
    const Node& node = g_.node(id);
    if (node.is_input()) return input(node);
    if (node.is_constant) {
      return b_.constant(g_.constants[static_cast<std::size_t>(node.slot)]->data(),
                         node.type.shape);
    }
    NodeId found = kNone;
    if (node.op == matmul)
      found = product(node);
    else if (node.op == sum)
      found = matrix_gradient(node);
    else if (node.op == vjp)
      found = table_gradient(node);
    if (found != kNone) return found;
    std::vector<NodeId> operands;
    for (const NodeId operand : node.inputs) operands.push_back(here(operand));
    return b_.emit(node.op, operands, node.attributes);
  }

  NodeId input(const Node& node) {
    const std::string& name = g_.inputs[static_cast<std::size_t>(node.slot)].name;
    if (node.type.csr) return b_.csr_input(name, node.type.shape[0]);
    return b_.input(name, node.type.shape, node.type.batched);
  }

  /// The node whose elements these are.
  NodeId unshaped(NodeId node) const {
    static const OpId reshape = find_op("reshape");
    while (g_.node(node).op == reshape) node = g_.node(node).inputs[0];
    return node;
  }

  std::optional<Lookup> lookup(const Node& taken) const {
    static const OpId take = find_op("take");
    if (taken.op != take || taken.attributes[0][0] != 0) return std::nullopt;
    const auto [table, indices] = std::pair(taken.inputs[0], taken.inputs[1]);
    const Type& rows = type(table);
    if (rows.batched || rows.shape.rank() != 2 || !type(indices).batched) return std::nullopt;
    if (!g_.node(unshaped(table)).is_input()) return std::nullopt;
    return Lookup{table, indices, rows.shape[0], rows.shape[1]};
  }

  /// Sizes of (m, k) looked-up elements times a matrix of n columns, if tables may be worth while.
  std::optional<Sizes> sizes(std::int64_t m, std::int64_t k, std::int64_t v, std::int64_t e,
                             std::int64_t n) {
    if (e == 0 || k % e != 0 || m * k * n == 0) return std::nullopt;
    const Sizes z{m, k / e, v, e, n};
    if (z.least_samples() == 0) return std::nullopt;
    least_ = std::max(least_, z.least_samples());
    return z;
  }

  void needs_finite(NodeId table) {
    const std::int32_t input = g_.node(unshaped(table)).slot;
    if (std::find(inputs_.begin(), inputs_.end(), input) == inputs_.end()) inputs_.push_back(input);
  }

  NodeId reshape(NodeId node, Extents shape) {
    return b_.emit("reshape", {node}, Attributes(std::move(shape)));
  }
  NodeId matmul(NodeId a, bool ta, NodeId b, bool tb, bool sums = false) {
    return b_.emit("matmul", {a, b}, Attributes({ta}, {tb}, {sums}));
  }

  /// Looked-up rows times a matrix.
  NodeId product(const Node& node) {
    const auto [a, b] = std::pair(node.inputs[0], node.inputs[1]);
    const bool tb = flag(node, 1);
    if (!is_rows_times_matrix(node)) return kNone;
    const auto rows = lookup(g_.node(unshaped(a)));
    if (!rows) return kNone;
    const auto z =
        sizes(type(a).shape[0], type(a).shape[1], rows->rows, rows->width, node.type.shape[1]);
    if (!z) return kNone;
    needs_finite(rows->table);
    const NodeId table = here(rows->table);
    const NodeId tables =
        tb ? reshape(matmul(reshape(here(b), {z->n * z->t, z->e}), false, table, true),
                     {z->n, z->t, z->v})
           : reshape(matmul(table, false, matrices(here(b), *z), false), {z->t, z->v, z->n});
    return b_.emit("table_rows", {tables, indices(*rows, *z)}, Attributes({!tb}));
  }

  /// A matrix (t e, n), by table.
  NodeId matrices(NodeId matrix, const Sizes& z) {
    return z.t == 1 ? matrix : reshape(matrix, {z.t, z.e, z.n});
  }

  /// Batched rows times an unbatched matrix.
  bool is_rows_times_matrix(const Node& node) const {
    const auto [a, b] = std::pair(node.inputs[0], node.inputs[1]);
    return type(a).batched && !type(b).batched && type(a).shape.rank() == 2 &&
           type(b).shape.rank() == 2 && !flag(node, 0) && !flag(node, 2);
  }

  NodeId indices(const Lookup& rows, const Sizes& z) {
    return reshape(here(rows.indices), {z.m, z.t});
  }

  /// What the samples' cotangents (m, n) add up to, in tables as the products have them.
  NodeId summed(NodeId cotangent, const Lookup& rows, const Sizes& z, bool rows_first) {
    return b_.emit("table_rows_vjp_batch_sum",
                   {reshape(here(cotangent), {z.m, z.n}), indices(rows, z)},
                   Attributes({z.v}, {rows_first}));
  }

  /// The sum over the samples of cotangents (m, n) times looked-up rows (m, t e), or its transpose.
  NodeId matrix_gradient(const Node& node) {
    const auto [a, b] = std::pair(node.inputs[0], node.inputs[1]);
    if (type(a).shape.rank() != 2 || type(b).shape.rank() != 2) return kNone;
    const std::int64_t m = type(a).shape[flag(node, 0) ? 0 : 1];
    // Of one row only it does not matter how it lies.
    if (m != 1 && !(flag(node, 0) && !flag(node, 1))) return kNone;
    for (const bool is_first : {false, true}) {
      const auto [x, cotangent] = is_first ? std::pair(a, b) : std::pair(b, a);
      const auto rows = lookup(g_.node(unshaped(x)));
      if (!rows) continue;
      const auto z =
          sizes(m, type(x).size() / m, rows->rows, rows->width, type(cotangent).size() / m);
      if (!z) continue;
      needs_finite(rows->table);
      const NodeId table = here(rows->table);
      const NodeId sums = summed(cotangent, *rows, *z, is_first);
      if (!is_first) {
        const NodeId columns = reshape(sums, {z->n * z->t, z->v});
        return reshape(matmul(columns, false, table, false), {z->n, z->t * z->e});
      }
      const NodeId tables = z->t == 1 ? reshape(sums, {z->v, z->n}) : sums;
      return reshape(matmul(table, true, tables, false), {z->t * z->e, z->n});
    }
    return kNone;
  }

  /// The cotangent of looked-up rows, itself a product with a matrix, summed over the samples.
  NodeId table_gradient(const Node& node) {
    const Node& through = g_.node(unshaped(node.inputs[0]));
    static const OpId matmul_op = find_op("matmul");
    if (through.op != matmul_op || !is_rows_times_matrix(through)) return kNone;
    const auto rows = std::find_if(lookups_.begin(), lookups_.end(), [&](const Lookup& l) {
      const bool is_axis_0 = node.attributes[0][0] == 0;
      return is_axis_0 && l.indices == node.inputs[1] &&
             node.attributes[1] == Extents{l.rows, l.width};
    });
    if (rows == lookups_.end()) return kNone;
    const auto [cotangent, b] = std::pair(through.inputs[0], through.inputs[1]);
    const Shape& product = through.type.shape;
    const auto z = sizes(product[0], product[1], rows->rows, rows->width, type(cotangent).shape[1]);
    if (!z) return kNone;
    const bool tb = flag(through, 1);
    const NodeId sums = summed(cotangent, *rows, *z, tb);
    if (!tb) return table_gradient_of(sums, here(b), *z);
    const NodeId tables = z->t == 1 ? reshape(sums, {z->v, z->n}) : sums;
    return matmul(tables, false, matrices(here(b), *z), true, z->t > 1);
  }

  /// Cotangents (n, t, v) of the products times the matrix (n, t e): parts of both, and their sum.
  /// A thread reads of the matrix what it multiplies otherwise as well.
  NodeId table_gradient_of(NodeId sums, NodeId matrix, const Sizes& z) {
    std::int64_t parts = 1;
    while (2 * parts <= kMostParts && z.n % (2 * parts) == 0 &&
           z.n * z.t >= 2 * parts * kPartRows) {
      parts *= 2;
    }
    const std::int64_t rows = z.n * z.t / parts;
    if (parts == 1) {
      return matmul(reshape(sums, {rows, z.v}), true, reshape(matrix, {rows, z.e}), false);
    }
    const NodeId products =
        matmul(reshape(sums, {parts, rows, z.v}), true, reshape(matrix, {parts, rows, z.e}), false);
    return b_.emit("sum", {products}, Attributes({0}, {0}));
  }

  const Graph& g_;
  Builder b_;
  std::vector<Lookup> lookups_;
  std::vector<NodeId> here_;  ///< by node of the graph, in the new one
  std::int64_t least_ = 0;
  std::vector<std::int32_t> inputs_;
};

}  // namespace

std::optional<TableForm> with_tables(const Graph& graph) { return Tabler(graph).run(); }

}  // namespace buropt
