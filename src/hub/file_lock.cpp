#include "hub/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

#include "core/replace_file.h"

namespace forerun {
namespace {

constexpr std::chrono::milliseconds kLockPause{50};
constexpr size_t kMaxLockText = 1024;

// Whoever had the lock may have removed its file: then another one of that name is to be locked.
bool is_at(const OpenFile& file, const std::filesystem::path& path) {
  struct stat open {};
  struct stat there {};
  return ::fstat(file.fd(), &open) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open.st_ino == there.st_ino && open.st_dev == there.st_dev;
}

OpenFile locked(const std::filesystem::path& path, const std::function<void()>& on_wait) {
  while (true) {
    OpenFile file(path, O_RDWR | O_CREAT, 0644);
    while (::flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) fail_io("lock", path, errno);
      on_wait();
      std::this_thread::sleep_for(kLockPause);
    }
    if (is_at(file, path)) return file;
  }
}

}  // namespace

OpenFile::OpenFile(const std::filesystem::path& path, int flags, mode_t mode)
    : fd_(::open(path.c_str(), flags | O_CLOEXEC, mode)) {
  if (fd_ < 0) fail_io("open", path, errno);
}

OpenFile::~OpenFile() {
  if (fd_ >= 0) ::close(fd_);
}

OpenFile::OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

OpenFile& OpenFile::operator=(OpenFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

FileLock::FileLock(const std::filesystem::path& path, const std::function<void()>& on_wait)
    : path_(path), file_(locked(path, on_wait)) {}

std::string FileLock::read() const {
  std::array<char, kMaxLockText> text{};
  const ssize_t n = ::pread(file_.fd(), text.data(), text.size(), 0);
  return n > 0 ? std::string(text.data(), static_cast<size_t>(n)) : std::string();
}

void FileLock::write(const std::string& text) {
  if (::ftruncate(file_.fd(), 0) != 0) fail_io("write", path_, errno);
  write_at(file_.fd(), 0, std::as_bytes(std::span(text)), path_);
}

void FileLock::remove() {
  ::unlink(path_.c_str());
}

}  // namespace forerun
