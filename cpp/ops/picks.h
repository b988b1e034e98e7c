// Places that integers, which the graph holds as floats, pick along an axis.
#pragma once

#include <cstdint>

namespace buropt {

/// The place that an index means, or -1 if it is out of range. A negative one counts from the end.
template <class T>
std::int64_t place_of(T index, std::int64_t extent) noexcept {
  // Compared as a float first, also with NaN: what is far outside cannot become an integer.
  if (!(index >= static_cast<T>(-extent) && index <= static_cast<T>(extent))) return -1;
  auto place = static_cast<std::int64_t>(index);
  if (place < 0) place += extent;
  return place < extent ? place : -1;
}

}  // namespace buropt
