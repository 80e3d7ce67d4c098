// Work on several things that may be done at the same time.
#pragma once

#include <cstddef>
#include <functional>

namespace forerun {

// Calls f(i) for each i below n, from whatever threads there are; returns when all are done.
using ShareOut = std::function<void(size_t n, const std::function<void(size_t)>& f)>;

inline void one_after_other(size_t n, const std::function<void(size_t)>& f) {
  for (size_t i = 0; i < n; ++i) f(i);
}

}  // namespace forerun
