#include "math/rounding.h"

namespace buropt::detail {

FloorDivision floor_division(double a, double b) noexcept {
  double remainder = std::fmod(a, b);
  if (b == 0) return {a / b, remainder};
  double quotient = (a - remainder) / b;  // a whole number, up to rounding
  if (remainder == 0) {
    remainder = std::copysign(0.0, b);
  } else if ((b < 0) != (remainder < 0)) {
    remainder += b;
    quotient -= 1;
  }
  if (quotient == 0) return {std::copysign(0.0, a / b), remainder};
  const double whole = std::floor(quotient);
  return {quotient - whole > 0.5 ? whole + 1 : whole, remainder};
}

}  // namespace buropt::detail
