// Sums of exponentials of rows, for softmax and its relatives.
//
// Of the largest element m of a row only differences x - m are exponentiated, so nothing overflows.
// The elements equal to m are counted, the exponentials of the others are summed: where one element
// dominates, log(ties + rest) = log1p(ties - 1 + rest) keeps the digits of the rest.
#pragma once

#include "math/elementary.h"
#include "ops/rows.h"

namespace buropt {

template <class T>
struct ExponentialSums {
  Pack<T> max;
  Pack<T> ties;  // elements equal to the largest
  Pack<T> rest;  // sum of exp(x - max) over the others
};

/// For a group of rows. store(r, columns, e, tie) sees e = exp(x - max) and where x == max. If
/// `apart` is false, only the sum of ties and rest is right.
template <bool apart, class T, class Store>
BUROPT_INLINE ExponentialSums<T> exponential_sums(const GroupRows<T>& x, int count, std::int64_t n,
                                                  Store store) noexcept {
  const Pack<T> max = fold_group(n, -kInfinity<T>, Larger(),
                                 [&](int r, auto at) { return at.load(x[r], -kInfinity<T>); });
  const RowValues<T> max_of(max);
  RowGroup<T> ties(T(apart ? 1 : 0));
  RowGroup<T> rest(T(0));
  for (int r = 0; r < count; ++r) {
    const Pack<T> m(max_of[r]);
    Pack<T> number(T(0));
    Pack<T> sum(T(0));
    for_each_columns<T>(n, [&](auto at) {
      const Pack<T> value = at.load(x[r], -kInfinity<T>);
      const Mask<T> tie = value == m;
      const Pack<T> e = exp_of_nonpositive(value - m);
      if constexpr (apart) number += at.within(select(tie, Pack<T>(T(1)), Pack<T>(T(0))));
      sum += at.within(select(tie, Pack<T>(T(apart ? 0 : 1)), e));
      store(r, at, e, tie);
    });
    if constexpr (apart) ties[r] = number;
    rest[r] = sum;
  }
  return {max, ties.folded(Plus()), rest.folded(Plus())};
}

/// log of the sum of exp(x - max).
template <class T>
BUROPT_INLINE Pack<T> log_of_sum(const ExponentialSums<T>& sums) noexcept {
  return log1p((sums.ties - T(1)) + sums.rest);
}

struct NoStore {
  template <class... Any>
  BUROPT_INLINE void operator()(const Any&...) const noexcept {}
};

}  // namespace buropt
