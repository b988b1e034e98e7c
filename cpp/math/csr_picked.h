// Rows of a sparse matrix that a list names, times a vector, and the scatter of its gradient: the
// sums of csr_dot and csr_scatter, in their order, bit for bit.
//
// Rows here and there are no stream that the hardware could fetch ahead, so csr_dot_picked fetches
// a few rows ahead.
//
// csr_scatter_picked loads the columns of a group of entries before it stores to those of the group
// before it. Where a load stands behind a store to the same place in another page, and the pages
// look alike to the processor, it waits until that store has left the queue. If what waits is a
// column, the loads from g behind it wait too, because its store might be to where they read. With
// every column loaded where it is used, the time went by where in memory g happened to lie (32 rows
// of 14 entries: mostly 250 ns, one place in ten 500 ns, at worst 1000 ns).
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>

#include "math/csr_rows.h"
#include "math/lanes.h"

namespace buropt {
namespace detail {

// Rows ahead to fetch.
inline constexpr std::int64_t kCsrRowsAhead = 4;

// The columns of four entries, in registers from here on.
class CsrColumns {
 public:
  static constexpr std::int64_t kSize = 4;

  BUROPT_INLINE explicit CsrColumns(const std::int32_t* columns) noexcept {
    std::memcpy(pairs_.data(), columns, sizeof(pairs_));
    asm("" : "+r"(pairs_[0]), "+r"(pairs_[1]));
  }
  template <int i>
  BUROPT_INLINE std::int64_t get() const noexcept {
    return std::bit_cast<std::array<std::int32_t, 2>>(pairs_[i / 2])[i % 2];
  }

 private:
  std::array<std::uint64_t, 2> pairs_;
};

template <bool has_values, class T>
BUROPT_INLINE T add_entry(T factor, const T* values, std::int64_t e, T sum) noexcept {
  if constexpr (has_values) return multiply_add(factor, values[e], sum);
  return sum + factor;
}

template <bool has_values, class T>
void csr_dot_picked(const CsrRows<T>& rows, const T* x, T* z) noexcept {
  const std::int32_t* all_columns = rows.columns;
  const std::int64_t* starts = rows.row_starts;
  const std::int64_t* picks = rows.rows + rows.first;
  const std::int64_t n = rows.n;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t ahead = starts[picks[std::min(i + kCsrRowsAhead, n - 1)]];
    __builtin_prefetch(all_columns + ahead);
    if constexpr (has_values) __builtin_prefetch(rows.values + ahead);
    const std::int64_t begin = starts[picks[i]];
    const std::int32_t* columns = all_columns + begin;
    const T* values = has_values ? rows.values + begin : nullptr;
    std::int64_t count = starts[picks[i] + 1] - begin;
    T a{}, b{}, c{}, d{};
    for (; count >= 4; count -= 4) {
      a = add_entry<has_values>(x[columns[0]], values, 0, a);
      b = add_entry<has_values>(x[columns[1]], values, 1, b);
      c = add_entry<has_values>(x[columns[2]], values, 2, c);
      d = add_entry<has_values>(x[columns[3]], values, 3, d);
      columns += 4;
      if constexpr (has_values) values += 4;
    }
    if (count > 0) a = add_entry<has_values>(x[columns[0]], values, 0, a);
    if (count > 1) b = add_entry<has_values>(x[columns[1]], values, 1, b);
    if (count > 2) c = add_entry<has_values>(x[columns[2]], values, 2, c);
    z[i] = (a + c) + (b + d);
  }
}

template <bool has_values, class T>
void csr_scatter_picked(const CsrRows<T>& rows, const T* r, T* g) noexcept {
  const std::int64_t n = rows.n;
  const std::int64_t n_entries = rows.n_entries;
  if (n == 0) return;
  // Groups are loaded whole. Where that would leave the matrix, a row is added entry by entry.
  std::int32_t few[CsrColumns::kSize] = {};
  const std::int32_t* all_columns = rows.columns;
  if (n_entries < CsrColumns::kSize) {
    std::copy_n(all_columns, n_entries, few);
    all_columns = few;
  }
  const std::int32_t* last_group =
      all_columns + std::max<std::int64_t>(0, n_entries - CsrColumns::kSize);
  struct Row {
    const std::int32_t* columns;
    std::int64_t count;
  };
  const auto row_at = [&](std::int64_t i) noexcept -> Row {
    const std::int64_t* starts = rows.row_starts + rows.row(std::min(i, n - 1));
    return {all_columns + starts[0], starts[1] - starts[0]};
  };
  T nowhere{};  // where a group goes behind the end of its row
  auto [columns, count] = row_at(0);
  auto [next, next_count] = row_at(1);
  CsrColumns group(std::min(columns, last_group));
  for (std::int64_t i = 0; i < n; ++i) {
    auto [after, after_count] = row_at(i + 2);
    asm("" : "+r"(after), "+r"(after_count));  // loaded here, not in two rows' time
    const T factor = r[i];
    const T* values = has_values ? rows.values + (columns - all_columns) : nullptr;
    const auto add = [&](T& target, std::int64_t e) noexcept {
      target = add_entry<has_values>(factor, values, e, target);
    };
    if (columns + count > last_group) [[unlikely]] {
      for (std::int64_t e = 0; e < count; ++e) add(g[columns[e]], e);
      count = 0;
    }
    for (; count >= 4; count -= 4) {
      columns += 4;
      const CsrColumns following(columns);
      add(g[group.template get<0>()], 0);
      add(g[group.template get<1>()], 1);
      add(g[group.template get<2>()], 2);
      add(g[group.template get<3>()], 3);
      if constexpr (has_values) values += 4;
      group = following;
    }
    const CsrColumns first(std::min(next, last_group));
    if (count > 0) {
      T* second = count > 1 ? g + group.template get<1>() : &nowhere;
      T* third = count > 2 ? g + group.template get<2>() : &nowhere;
      asm("" : "+r"(second), "+r"(third));
      add(g[group.template get<0>()], 0);
      add(*second, 1);
      add(*third, 2);
    }
    group = first;
    columns = next;
    count = next_count;
    next = after;
    next_count = after_count;
  }
}

}  // namespace detail

/// z (n,) = A x (d,), for rows that are picked.
template <class T>
void csr_dot_picked(const CsrRows<T>& a, const T* x, T* z) noexcept {
  return a.values != nullptr ? detail::csr_dot_picked<true>(a, x, z)
                             : detail::csr_dot_picked<false>(a, x, z);
}

/// g (d,) += A^T r (n,), for rows that are picked.
template <class T>
void csr_scatter_picked(const CsrRows<T>& a, const T* r, T* g) noexcept {
  return a.values != nullptr ? detail::csr_scatter_picked<true>(a, r, g)
                             : detail::csr_scatter_picked<false>(a, r, g);
}

}  // namespace buropt
