// Only one process, and one place in it, may write to a store.
//
// A lock of the system on the file `lock` of the store's folder, which goes away with the
// process however it ends.
#pragma once

#include <filesystem>

namespace forerun {

class WriteLock {
 public:
  // Throws Error{kIo} if somebody holds it, or if the folder cannot be written.
  explicit WriteLock(const std::filesystem::path& folder);
  ~WriteLock();
  WriteLock(const WriteLock&) = delete;
  WriteLock& operator=(const WriteLock&) = delete;

 private:
  int fd_;
};

}  // namespace forerun
