// A register-wide pack of numbers, built on the compilers' vector extension (no ISA intrinsics).
//
// One formula `template <class T> T f(T x)` serves four number types: float, double, Pack<float>
// and Pack<double>. A comparison gives a Mask (a plain bool for a scalar), `select` replaces a
// branch, and every function here exists for packs and scalars under one name.
//
// Sums of products contract to one fma where the target has it (-ffp-contract=fast). A formula
// whose bits must not depend on where it is inlined therefore lets every inexact product go into at
// most one sum, never writes a * b + c * d, and takes `rounded_product` where it needs the product
// itself.
#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#ifndef BUROPT_VECTOR_BYTES
#if defined(__AVX512F__)
#define BUROPT_VECTOR_BYTES 64
#elif defined(__AVX__)
#define BUROPT_VECTOR_BYTES 32
#else
#define BUROPT_VECTOR_BYTES 16
#endif
#endif

#define BUROPT_INLINE [[gnu::always_inline]] inline

// Left alone, the compilers unroll a loop over lanes before it can become one masked instruction.
// GCC also has to be told that the lanes, a local array, are no part of the memory in question.
#ifdef __clang__
#define BUROPT_VECTOR_LOOP _Pragma("clang loop unroll(disable)")
#else
#define BUROPT_VECTOR_LOOP _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#endif

namespace buropt {

namespace detail {

template <std::size_t bytes>
using IntOfBytes = std::conditional_t<bytes == 4, std::int32_t, std::int64_t>;
template <std::size_t bytes>
using UIntOfBytes = std::conditional_t<bytes == 4, std::uint32_t, std::uint64_t>;
template <std::size_t bytes>
using FloatOfBytes = std::conditional_t<bytes == 4, float, double>;

}  // namespace detail

template <class T>
struct Mask;

// Lanes of T in one register. T: float, double, or an integer of 32 or 64 bits.
template <class T>
struct Pack {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  static constexpr int size = BUROPT_VECTOR_BYTES / static_cast<int>(sizeof(T));

  using Lane = detail::IntOfBytes<sizeof(T)>;
  using MaskType = Mask<detail::FloatOfBytes<sizeof(T)>>;  // shared by integers and floats
  typedef T Vector __attribute__((vector_size(BUROPT_VECTOR_BYTES)));
  typedef T Unaligned
      __attribute__((vector_size(BUROPT_VECTOR_BYTES), aligned(alignof(T)), may_alias));

  Vector v;

  Pack() = default;
  BUROPT_INLINE Pack(T x) noexcept : v(broadcast(x, std::make_index_sequence<size>())) {}
  BUROPT_INLINE static Pack wrap(Vector v) noexcept {
    Pack p;
    p.v = v;
    return p;
  }

  BUROPT_INLINE static Pack load(const T* p) noexcept {
    return wrap(*reinterpret_cast<const Unaligned*>(p));
  }
  BUROPT_INLINE void store(T* p) const noexcept { *reinterpret_cast<Unaligned*>(p) = v; }

  // The first n lanes from memory (0 <= n <= size), `fill` in the others. Only n elements are read.
  BUROPT_INLINE static Pack load_n(const T* p, int n, T fill = T(0)) noexcept {
    alignas(BUROPT_VECTOR_BYTES) T lanes[size];
    const Lane count = n;  // an index as wide as T, so that one comparison makes the lane mask
    BUROPT_VECTOR_LOOP
    for (Lane i = 0; i < size; ++i) lanes[i] = i < count ? p[i] : fill;
    return load(lanes);
  }
  BUROPT_INLINE void store_n(T* p, int n) const noexcept {
    alignas(BUROPT_VECTOR_BYTES) T lanes[size];
    store(lanes);
    const Lane count = n;
    BUROPT_VECTOR_LOOP
    for (Lane i = 0; i < size; ++i) {
      if (i < count) p[i] = lanes[i];
    }
  }

  BUROPT_INLINE T operator[](int i) const noexcept { return v[i]; }

  BUROPT_INLINE friend Pack operator+(Pack a, Pack b) noexcept { return wrap(a.v + b.v); }
  BUROPT_INLINE friend Pack operator-(Pack a, Pack b) noexcept { return wrap(a.v - b.v); }
  BUROPT_INLINE friend Pack operator*(Pack a, Pack b) noexcept { return wrap(a.v * b.v); }
  BUROPT_INLINE friend Pack operator/(Pack a, Pack b) noexcept { return wrap(a.v / b.v); }
  BUROPT_INLINE friend Pack operator-(Pack a) noexcept { return wrap(-a.v); }
  BUROPT_INLINE Pack& operator+=(Pack b) noexcept { return *this = *this + b; }

  // Integer packs only.
  BUROPT_INLINE friend Pack operator&(Pack a, Pack b) noexcept { return wrap(a.v & b.v); }
  BUROPT_INLINE friend Pack operator^(Pack a, Pack b) noexcept { return wrap(a.v ^ b.v); }
  BUROPT_INLINE friend Pack operator|(Pack a, Pack b) noexcept { return wrap(a.v | b.v); }
  BUROPT_INLINE friend Pack operator<<(Pack a, int n) noexcept { return wrap(a.v << n); }
  BUROPT_INLINE friend Pack operator>>(Pack a, int n) noexcept { return wrap(a.v >> n); }

  BUROPT_INLINE friend MaskType operator<(Pack a, Pack b) noexcept { return {a.v < b.v}; }
  BUROPT_INLINE friend MaskType operator<=(Pack a, Pack b) noexcept { return {a.v <= b.v}; }
  BUROPT_INLINE friend MaskType operator>(Pack a, Pack b) noexcept { return {a.v > b.v}; }
  BUROPT_INLINE friend MaskType operator>=(Pack a, Pack b) noexcept { return {a.v >= b.v}; }
  BUROPT_INLINE friend MaskType operator==(Pack a, Pack b) noexcept { return {a.v == b.v}; }
  BUROPT_INLINE friend MaskType operator!=(Pack a, Pack b) noexcept { return {a.v != b.v}; }

  // The functions below are friends so that a scalar argument broadcasts: fma(x, 0.5, y).
  // Their scalar twins, with the comments on meaning, are at the end of this file.
  BUROPT_INLINE friend Pack select(MaskType m, Pack a, Pack b) noexcept {
    return wrap(m.v ? a.v : b.v);
  }
  BUROPT_INLINE friend Pack fma(Pack a, Pack b, Pack c) noexcept { return wrap(a.v * b.v + c.v); }
  BUROPT_INLINE friend Pack min(Pack a, Pack b) noexcept { return wrap(a.v < b.v ? a.v : b.v); }
  BUROPT_INLINE friend Pack max(Pack a, Pack b) noexcept { return wrap(a.v > b.v ? a.v : b.v); }
  BUROPT_INLINE friend Pack minimum(Pack a, Pack b) noexcept {
    return select(a != a, a, min(a, b));
  }
  BUROPT_INLINE friend Pack maximum(Pack a, Pack b) noexcept {
    return select(a != a, a, max(a, b));
  }
  BUROPT_INLINE friend Pack sqrt(Pack a) noexcept {
    Pack r;
    for (int i = 0; i < size; ++i) {
      if constexpr (sizeof(T) == 4) {
        r.v[i] = __builtin_sqrtf(a.v[i]);
      } else {
        r.v[i] = __builtin_sqrt(a.v[i]);
      }
    }
    return r;
  }

 private:
  template <std::size_t... i>
  BUROPT_INLINE static Vector broadcast(T x, std::index_sequence<i...>) noexcept {
    return Vector{(static_cast<void>(i), x)...};
  }
};

// All ones in a lane that is true, all zeros in one that is false. T: float or double.
template <class T>
struct Mask {
  static constexpr int size = Pack<T>::size;
  using Vector = typename Pack<detail::IntOfBytes<sizeof(T)>>::Vector;

  Vector v;

  BUROPT_INLINE bool operator[](int i) const noexcept { return v[i] != 0; }
  BUROPT_INLINE friend Mask operator&(Mask a, Mask b) noexcept { return {a.v & b.v}; }
  BUROPT_INLINE friend Mask operator|(Mask a, Mask b) noexcept { return {a.v | b.v}; }
  BUROPT_INLINE friend Mask operator!(Mask a) noexcept { return {~a.v}; }
};

namespace detail {

template <class T>
struct Traits {
  using Scalar = T;
  using Bits = UIntOfBytes<sizeof(T)>;
  using Mask = bool;
};
template <class T>
struct Traits<Pack<T>> {
  using Scalar = T;
  using Bits = Pack<UIntOfBytes<sizeof(T)>>;
  using Mask = typename Pack<T>::MaskType;
};

}  // namespace detail

template <class T>
using Scalar = typename detail::Traits<T>::Scalar;  // Scalar<Pack<float>> = Scalar<float> = float
template <class T>
using UIntOf = typename detail::Traits<T>::Bits;  // unsigned integers of T's width, so they wrap
template <class T>
using MaskOf = typename detail::Traits<T>::Mask;  // what a comparison of two T gives

// A number type of the formulas: float, double, Pack<float> or Pack<double>.
template <class T>
concept Real = std::same_as<Scalar<T>, float> || std::same_as<Scalar<T>, double>;

// ---- Scalar twins of the pack's friends -------------------------------------------------------

template <class T>
concept ScalarFloat = std::same_as<T, float> || std::same_as<T, double>;
template <class T>
concept ScalarNumber =
    ScalarFloat<T> || std::same_as<T, std::uint32_t> || std::same_as<T, std::uint64_t>;

template <ScalarNumber T>
BUROPT_INLINE T select(bool m, T a, T b) noexcept {
  return m ? a : b;
}

// a * b + c: one fma instruction where the target has it, two roundings where it has not. A pack
// gets its instruction by contraction. For a scalar that is not certain enough: a compiler that
// pairs two scalar chains in one register may tear product and sum apart.
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define BUROPT_HAS_FMA 1
BUROPT_INLINE float fma(float a, float b, float c) noexcept { return __builtin_fmaf(a, b, c); }
BUROPT_INLINE double fma(double a, double b, double c) noexcept { return __builtin_fma(a, b, c); }
#else
#define BUROPT_HAS_FMA 0
template <ScalarFloat T>
BUROPT_INLINE T fma(T a, T b, T c) noexcept {
  return a * b + c;
}
#endif

// The cheap pair: b when either argument is NaN, b when they are equal (zeros of both signs).
template <ScalarNumber T>
BUROPT_INLINE T min(T a, T b) noexcept {
  return a < b ? a : b;
}
template <ScalarNumber T>
BUROPT_INLINE T max(T a, T b) noexcept {
  return a > b ? a : b;
}

// NumPy's pair: NaN when either argument is NaN.
template <ScalarFloat T>
BUROPT_INLINE T minimum(T a, T b) noexcept {
  return a != a ? a : min(a, b);
}
template <ScalarFloat T>
BUROPT_INLINE T maximum(T a, T b) noexcept {
  return a != a ? a : max(a, b);
}

BUROPT_INLINE float sqrt(float a) noexcept { return __builtin_sqrtf(a); }
BUROPT_INLINE double sqrt(double a) noexcept { return __builtin_sqrt(a); }

BUROPT_INLINE bool any(bool m) noexcept { return m; }

// ---- Functions of both packs and scalars --------------------------------------------------------

namespace detail {

// Combines lane i with lane i + width / 2, then the halves of the result, down to one lane.
template <class V, class Combine, std::size_t... i>
BUROPT_INLINE auto fold_lanes(V lanes, Combine combine, std::index_sequence<i...>) noexcept {
  constexpr std::size_t half = sizeof...(i);
  const auto folded = combine(__builtin_shufflevector(lanes, lanes, i...),
                              __builtin_shufflevector(lanes, lanes, (half + i)...));
  if constexpr (half == 1) {
    return folded[0];
  } else {
    return fold_lanes(folded, combine, std::make_index_sequence<half / 2>());
  }
}
template <class T, class Combine>
BUROPT_INLINE T fold_lanes(Pack<T> a, Combine combine) noexcept {
  return fold_lanes(a.v, combine, std::make_index_sequence<Pack<T>::size / 2>());
}

}  // namespace detail

// a * b, never contracted into a later sum: adding +0 is not the identity (it turns -0 into +0), so
// the compilers have to keep it, as the third operand of an fma.
template <Real T>
BUROPT_INLINE T rounded_product(T a, T b) noexcept {
  return fma(a, b, T(0));
}

template <class T>
BUROPT_INLINE bool any(Mask<T> m) noexcept {
  using Lanes = Pack<typename Pack<T>::Lane>;
  return detail::fold_lanes(Lanes::wrap(m.v), [](auto x, auto y) { return x | y; }) != 0;
}
// The bits of a float as an unsigned integer, and back.
template <Real T>
BUROPT_INLINE UIntOf<T> bits(T x) noexcept {
  return __builtin_bit_cast(UIntOf<T>, x);
}
template <Real T>
BUROPT_INLINE T from_bits(UIntOf<T> i) noexcept {
  return __builtin_bit_cast(T, i);
}

// Layout of the IEEE formats. `kRound` is the float whose unit in the last place is 1 and whose
// integer part has room for either sign: x + kRound rounds x to an integer, kept in the low bits.
// `kUnit` is the least such float: its low bits hold a count from zero up.
template <class S>
struct FloatFormat;
template <>
struct FloatFormat<float> {
  using Bits = std::uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr Bits kBias = 127;
  static constexpr Bits kSignBit = Bits{1} << 31;
  static constexpr float kRound = 0x1.8p23f;
  static constexpr float kUnit = 0x1p23f;
};
template <>
struct FloatFormat<double> {
  using Bits = std::uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr Bits kBias = 1023;
  static constexpr Bits kSignBit = Bits{1} << 63;
  static constexpr double kRound = 0x1.8p52;
  static constexpr double kUnit = 0x1p52;
};
template <Real T>
using Format = FloatFormat<Scalar<T>>;

template <Real T>
inline constexpr Scalar<T> kInfinity = std::numeric_limits<Scalar<T>>::infinity();
template <Real T>
inline constexpr Scalar<T> kNaN = std::numeric_limits<Scalar<T>>::quiet_NaN();

template <Real T>
BUROPT_INLINE T abs(T x) noexcept {
  return from_bits<T>(bits(x) & UIntOf<T>(~Format<T>::kSignBit));
}
// The sign bit of x, all other bits zero.
template <Real T>
BUROPT_INLINE UIntOf<T> sign_bit(T x) noexcept {
  return bits(x) & UIntOf<T>(Format<T>::kSignBit);
}
template <Real T>
BUROPT_INLINE T copysign(T magnitude, std::type_identity_t<T> sign) noexcept {
  return from_bits<T>(bits(abs(magnitude)) | sign_bit(sign));
}
template <Real T>
BUROPT_INLINE MaskOf<T> isnan(T x) noexcept {
  return x != x;
}

// x * scale rounded to the nearest integer (ties to even) of magnitude below 2^22 (float) or 2^51
// (double). `bits` is that integer in two's complement, as far as the low 22 or 51 bits tell.
template <Real T>
struct NearestInt {
  T value;
  UIntOf<T> bits;
};
template <Real T>
BUROPT_INLINE NearestInt<T> nearest_int(T x, std::type_identity_t<T> scale) noexcept {
  const T shifted = fma(x, scale, T(Format<T>::kRound));
  return {shifted - T(Format<T>::kRound), bits(shifted)};
}

}  // namespace buropt
