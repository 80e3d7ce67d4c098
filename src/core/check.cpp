#include "core/check.h"

#include <cstdio>
#include <cstdlib>

namespace forerun {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: CHECK failed: %s (a bug in forerun, please report it)\n", file, line,
               condition);
  std::abort();
}

}  // namespace forerun
