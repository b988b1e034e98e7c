// Mean and scale of rows, for normalizations: the kernels' part.
#pragma once

#include <bit>

#include "ops/rows.h"

namespace buropt {

/// As infer_rows, of an instruction with the attribute eps.
inline Type infer_normalized(std::string_view name, std::span<const Type> in,
                             const Attributes& attributes) {
  if (attributes[0].size() != 1) {
    raise(ErrorKind::value, "buropt.%.*s: the number eps is missing", static_cast<int>(name.size()),
          name.data());
  }
  return infer_rows(name, in);
}

/// The attribute "eps": the bits of a double, last of the instruction's numbers.
inline void append_epsilon(const Attributes& attributes, Instruction& s) {
  s.numbers.push_back(attributes[0].at(0));
}
template <class T>
T epsilon(const Instruction& s) noexcept {
  return static_cast<T>(std::bit_cast<double>(s.numbers.back()));
}

/// Of the rows of a group: mean (0 if not centred) and 1 / sqrt(mean((x - mean)^2) + eps).
template <class T>
struct Moments {
  Pack<T> mean;
  Pack<T> scale;
};

template <bool centred, class T>
BUROPT_INLINE Moments<T> moments(const GroupRows<T>& x, std::int64_t n, T eps) noexcept {
  const T per_column = T(1) / static_cast<T>(n);
  Pack<T> mean(T(0));
  if constexpr (centred) {
    mean = group_sums<T>(n, [&](int r, auto at) { return at.load(x[r]); }) * per_column;
  }
  const RowValues<T> mean_of(mean);
  const Pack<T> squares = group_sums<T>(n, [&](int r, auto at) {
    const Pack<T> d = at.within(at.load(x[r]) - mean_of[r]);
    return d * d;
  });
  return {mean, T(1) / sqrt(squares * per_column + eps)};
}

/// scale (ct - mean(ct) - y mean(ct y)), the second term only if centred, with y = (x - mean)
/// scale; ct(r, columns) and x(r, columns) give the rows, and to(r) where row r goes.
template <bool centred, class T, class Cotangent, class Row, class To>
BUROPT_INLINE void pull_normalized(std::int64_t n, int count, const RowValues<T>& mean,
                                   const RowValues<T>& scale, Cotangent ct, Row x, To to) noexcept {
  const T per_column = T(1) / static_cast<T>(n);
  Pack<T> plain(T(0));
  if constexpr (centred) {
    plain = group_sums<T>(n, [&](int r, auto at) { return ct(r, at); }) * per_column;
  }
  const Pack<T> weighted =
      group_sums<T>(n, [&](int r, auto at) { return ct(r, at) * at.within(x(r, at) - mean[r]); });
  const Pack<T> factors = Pack<T>::load(scale.values);
  const RowValues<T> mean_ct(plain);
  const RowValues<T> slope(weighted * per_column * factors * factors);
  for_each_columns<T>(n, [&](auto at) {
    for (int r = 0; r < count; ++r) {
      const Pack<T> d = x(r, at) - mean[r];
      at.store(to(r), (ct(r, at) - mean_ct[r] - d * slope[r]) * scale[r]);
    }
  });
}

}  // namespace buropt
