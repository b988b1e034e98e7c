// table_rows {"rows_first"} and table_rows_vjp_batch_sum {"n_rows"}, {"rows_first"}: sums of rows
// of several tables, and their transpose summed over the samples.
//
//   tables (n, t, v), indices (m, t)  ->  (m, n): row i is the sum over t of the columns that
//                                         table t has for its row indices[i, t]
//   cotangent (m, n), indices (m, t)  ->  (n, t, v)
//
// With rows_first the tables are (t, v, n). Only the planner makes them (graph/tables.h). Indices
// mean what they mean to `take`: a row with one that is out of range is NaN, and nothing is added
// there. Additions to one place are made in the order of the samples and of their rows.
#include <algorithm>
#include <limits>

#include "math/rows.h"
#include "math/transpose.h"
#include "ops/families.h"
#include "ops/picks.h"

namespace buropt {
namespace {

/// Columns of the tables that are worked on at a time, in registers.
constexpr int kPacks = 4;
template <class T>
constexpr std::int64_t kColumns = kPacks * Pack<T>::size;

// Instruction::numbers: t, v, n, m, rows_first.
struct Sizes {
  std::int64_t tables, rows, columns, sums;
  bool rows_first;

  explicit Sizes(const Instruction& s)
      : tables(s.numbers[0]),
        rows(s.numbers[1]),
        columns(s.numbers[2]),
        sums(s.numbers[3]),
        rows_first(s.numbers[4] != 0) {}
  /// Of all tables together.
  std::int64_t all_rows() const noexcept { return tables * rows; }
};

/// Some columns of all tables, a row after the other: in the order and the place in which they are
/// read and added to.
template <class T>
struct Panel {
  T* values;
  std::int64_t first, width;  ///< columns

  void read(const Sizes& z, const T* tables) const noexcept {
    if (!z.rows_first)
      return transpose(width, z.all_rows(), tables + first * z.all_rows(), z.all_rows(), values,
                       width);
    for (std::int64_t r = 0; r < z.all_rows(); ++r) {
      copy_columns(tables + r * z.columns + first, values + r * width, width);
    }
  }
  void write(const Sizes& z, T* tables) const noexcept {
    if (!z.rows_first)
      return transpose(z.all_rows(), width, values, width, tables + first * z.all_rows(),
                       z.all_rows());
    for (std::int64_t r = 0; r < z.all_rows(); ++r) {
      copy_columns(values + r * width, tables + r * z.columns + first, width);
    }
  }
};

/// Where in a panel the rows begin that the indices pick, in numbers of rows; -1: nowhere.
template <class T>
const std::int32_t* find_rows(const Sizes& z, const T* indices, std::int64_t sums,
                              std::int32_t* rows) noexcept {
  for (std::int64_t i = 0; i < sums; ++i) {
    for (std::int64_t t = 0; t < z.tables; ++t) {
      const std::int64_t row = place_of(indices[i * z.tables + t], z.rows);
      rows[i * z.tables + t] = static_cast<std::int32_t>(row < 0 ? -1 : t * z.rows + row);
    }
  }
  return rows;
}

/// Calls f(panel, picked rows, columns...) for the panels of a call's share; `columns` are all of
/// the panel, as many as fill registers, or one register after the other.
template <class T, class F>
void for_panels(const Sizes& z, const Frame& frame, const T* indices, std::int64_t sums,
                F&& f) noexcept {
  constexpr std::int64_t kLanes = Pack<T>::size;
  auto* const values = reinterpret_cast<T*>(frame.scratch);
  const std::int32_t* rows = find_rows(
      z, indices, sums, reinterpret_cast<std::int32_t*>(values + z.all_rows() * kColumns<T>));
  const std::int64_t panels = ceil_div(z.columns, kColumns<T>);
  const std::int64_t end = part_begin(panels, frame.parts, frame.part + 1);
  for (std::int64_t p = part_begin(panels, frame.parts, frame.part); p < end; ++p) {
    const std::int64_t first = p * kColumns<T>;
    const Panel<T> panel{values, first, std::min(kColumns<T>, z.columns - first)};
    f(panel, rows, [&](auto&& with_columns) noexcept {
      if (panel.width == kColumns<T>)
        return with_columns(WholeColumns<T>{0}, WholeColumns<T>{kLanes},
                            WholeColumns<T>{2 * kLanes}, WholeColumns<T>{3 * kLanes});
      for_each_columns<T>(panel.width, with_columns);
    });
  }
}

template <class T>
void sum_kernel(const Instruction& s, const Frame& frame) noexcept {
  const Sizes z(s);
  const std::int64_t sums = z.sums * s.rows(frame);
  const T* tables = buffer_as<const T>(frame, s.in[0]);
  T* out = buffer_as<T>(frame, s.out);
  for_panels(z, frame, buffer_as<const T>(frame, s.in[1]), sums,
             [&](const Panel<T>& panel, const std::int32_t* rows, auto&& for_columns) noexcept {
               panel.read(z, tables);
               for_columns([&](auto... at) noexcept {
                 for (std::int64_t i = 0; i < sums; ++i) {
                   std::array<Pack<T>, sizeof...(at)> total;
                   total.fill(Pack<T>(T(0)));
                   for (std::int64_t t = 0; t < z.tables; ++t) {
                     const std::int64_t row = rows[i * z.tables + t];
                     std::size_t k = 0;
                     if (row >= 0)
                       ((total[k] += at.load(panel.values + row * panel.width), ++k), ...);
                     else
                       total.fill(Pack<T>(std::numeric_limits<T>::quiet_NaN()));
                   }
                   std::size_t k = 0;
                   ((at.store(out + i * z.columns + panel.first, total[k]), ++k), ...);
                 }
               });
             });
}

template <class T>
void vjp_kernel(const Instruction& s, const Frame& frame) noexcept {
  const Sizes z(s);
  const std::int64_t sums = z.sums * frame.rows;
  const T* cotangent = buffer_as<const T>(frame, s.in[0]);
  T* tables = buffer_as<T>(frame, s.out);
  for_panels(z, frame, buffer_as<const T>(frame, s.in[1]), sums,
             [&](const Panel<T>& panel, const std::int32_t* rows, auto&& for_columns) noexcept {
               if (frame.adds)
                 panel.read(z, tables);
               else
                 std::fill_n(panel.values, z.all_rows() * panel.width, T(0));
               for_columns([&](auto... at) noexcept {
                 for (std::int64_t i = 0; i < sums; ++i) {
                   const T* from = cotangent + i * z.columns + panel.first;
                   const std::array<Pack<T>, sizeof...(at)> row{at.load(from)...};
                   for (std::int64_t t = 0; t < z.tables; ++t) {
                     if (rows[i * z.tables + t] < 0) continue;
                     T* to = panel.values + rows[i * z.tables + t] * panel.width;
                     std::size_t k = 0;
                     ((at.store(to, at.load(to) + row[k]), ++k), ...);
                   }
                 }
               });
               panel.write(z, tables);
             });
}

Type infer_sum(std::span<const Type> in, const Attributes& attributes) {
  Type out = in[1];
  out.shape = {in[1].shape[0], in[0].shape[attributes[0][0] != 0 ? 2 : 0]};
  return out;
}

Type infer_vjp(std::span<const Type> in, const Attributes& attributes) {
  Type out = in[0];
  out.batched = false;
  const std::int64_t t = in[1].shape[1];
  const std::int64_t v = attributes[0][0];
  const std::int64_t n = in[0].shape[1];
  out.shape = attributes[1][0] != 0 ? Shape{t, v, n} : Shape{n, t, v};
  return out;
}

void lower(const LowerContext& c, const Shape& tables, bool rows_first, Instruction& s) {
  const std::int64_t sums = c.in[1].shape[0];
  const int first = rows_first ? 0 : 1;
  const std::int64_t t = tables[first];
  const std::int64_t v = tables[first + 1];
  s.numbers = {t, v, tables[rows_first ? 2 : 0], sums, rows_first};
  s.splits = true;
  const std::int64_t panel = c.out.dtype == DType::float32 ? kColumns<float> : kColumns<double>;
  s.scratch_bytes = t * v * panel * size_of(c.out.dtype) +
                    sums * t * c.max_rows * static_cast<std::int64_t>(sizeof(std::int32_t));
}

}  // namespace

std::vector<Op> table_rows_ops() {
  Op sum;
  sum.name = "table_rows";
  sum.doc = "Sums of rows of several tables, picked by integers.";
  sum.arity = 2;
  sum.attributes = {"rows_first"};
  sum.derived = true;
  sum.picks = true;
  sum.infer = infer_sum;
  sum.work = [](std::span<const Type> in, const Type& out, const Attributes&) {
    return out.size() * in[1].shape[1];
  };
  sum.lower = [](const LowerContext& c, Instruction& s) {
    lower(c, c.in[0].shape, c.attributes[0][0] != 0, s);
    s.run = c.out.dtype == DType::float32 ? sum_kernel<float> : sum_kernel<double>;
  };

  Op vjp;
  vjp.name = "table_rows_vjp_batch_sum";
  vjp.doc = "Tables of zeros with rows added at the indices, summed over the samples.";
  vjp.arity = 2;
  vjp.attributes = {"n_rows", "rows_first"};
  vjp.derived = true;
  vjp.batching = Batching::reduces;
  vjp.infer = infer_vjp;
  vjp.work = [](std::span<const Type> in, const Type&, const Attributes&) {
    return in[0].size() * in[1].shape[1];
  };
  vjp.lower = [](const LowerContext& c, Instruction& s) {
    lower(c, c.out.shape, c.attributes[1][0] != 0, s);
    s.starts_sums = true;
    s.run = c.out.dtype == DType::float32 ? vjp_kernel<float> : vjp_kernel<double>;
  };
  return {sum, vjp};
}

}  // namespace buropt
