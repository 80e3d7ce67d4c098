// The most memory that this process has had.
#pragma once

#include <sys/resource.h>

#include <cstdint>

namespace forerun {

inline int64_t peak_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace forerun
