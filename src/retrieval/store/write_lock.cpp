#include "retrieval/store/write_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/replace_file.h"

namespace forerun {
namespace {

constexpr size_t kMaxDigits = 16;

// The process that holds the lock wrote its number into it.
std::string holder(int fd) {
  char digits[kMaxDigits];
  const ssize_t n = ::pread(fd, digits, sizeof(digits), 0);
  if (n <= 0) return "another process";
  const std::string_view text(digits, static_cast<size_t>(n));
  return fmt::format("process {}", text.substr(0, text.find('\n')));
}

}  // namespace

WriteLock::WriteLock(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "lock";
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) fail_io("write", path, errno);
  if (::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    const int reason = errno;
    const std::string who = holder(fd_);
    ::close(fd_);
    if (reason != EWOULDBLOCK) fail_io("lock", path, reason);
    fail(ErrorCode::kIo, "{} is being written by {}: until that is done it is read-only for others",
         folder.string(), who);
  }
  // Only for the message above, so a full disk does not matter.
  const std::string text = fmt::format("{}\n", ::getpid());
  if (::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, text.data(), text.size(), 0) < 0) {
    static_cast<void>(::ftruncate(fd_, 0) == 0);
  }
}

WriteLock::~WriteLock() {
  ::close(fd_);
}

}  // namespace forerun
