// Open files, and files that are locked while somebody works on what lies beside them.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <functional>
#include <string>

namespace forerun {

// Closes it at its end.
class OpenFile {
 public:
  // `flags` as for open(2). Throws Error.
  OpenFile(const std::filesystem::path& path, int flags, mode_t mode = 0);
  ~OpenFile();
  OpenFile(OpenFile&& other) noexcept;
  OpenFile& operator=(OpenFile&& other) noexcept;

  int fd() const { return fd_; }

 private:
  int fd_ = -1;
};

// One process at a time has it; it is free again when that ends, in whatever way. The file itself stays,
// with what was written into it, until it is removed.
class FileLock {
 public:
  // Waits until it is free; `on_wait` is called meanwhile, and may throw. Throws Error.
  FileLock(const std::filesystem::path& path, const std::function<void()>& on_wait);

  std::string read() const;
  void write(const std::string& text);
  void remove();

 private:
  std::filesystem::path path_;
  OpenFile file_;
};

}  // namespace forerun
