// The middle of some numbers.
#pragma once

#include <algorithm>
#include <vector>

#include "core/check.h"

namespace forerun {

// Of an even number of them, halfway between the two in the middle. There is at least one.
inline double median(std::vector<double> values) {
  CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

}  // namespace forerun
