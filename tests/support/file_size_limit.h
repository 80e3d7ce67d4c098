// Makes writing fail for a test, as a full disk does: no file may grow beyond a size.
#pragma once

#include <sys/resource.h>

#include <csignal>

#include "core/check.h"

namespace forerun::test {

class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t n_bytes) {
    std::signal(SIGXFSZ, SIG_IGN);  // an error of write() instead
    CHECK(::getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit{n_bytes, before_.rlim_max};
    CHECK(::setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileSizeLimit() {
    CHECK(::setrlimit(RLIMIT_FSIZE, &before_) == 0);
    std::signal(SIGXFSZ, SIG_DFL);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit before_{};
};

}  // namespace forerun::test
