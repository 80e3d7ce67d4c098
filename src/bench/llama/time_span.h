// How much of a time some spans of it cover.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

namespace forerun {

struct TimeSpan {
  double begin;
  double end;
};

inline double covered(std::vector<TimeSpan> spans) {
  std::ranges::sort(spans, {}, &TimeSpan::begin);
  double sum = 0, end = -std::numeric_limits<double>::infinity();
  for (const TimeSpan& span : spans) {
    sum += std::max(0.0, span.end - std::max(end, span.begin));
    end = std::max(end, span.end);
  }
  return sum;
}

}  // namespace forerun
