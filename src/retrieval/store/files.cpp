#include "retrieval/store/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "core/error.h"
#include "core/replace_file.h"

namespace forerun {
namespace {

constexpr mode_t kMode = 0644;

int open_or_fail(const std::filesystem::path& path, int flags, std::string_view verb) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, kMode);
  if (fd < 0) fail_io(verb, path, errno);
  return fd;
}

}  // namespace

StoreFile StoreFile::create(const std::filesystem::path& path) {
  return {path, open_or_fail(path, O_RDWR | O_CREAT | O_TRUNC, "write")};
}

StoreFile StoreFile::open(const std::filesystem::path& path) {
  return {path, open_or_fail(path, O_RDWR, "open")};
}

StoreFile::StoreFile(StoreFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

StoreFile::~StoreFile() {
  if (fd_ >= 0) ::close(fd_);
}

void StoreFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  forerun::write_at(fd_, offset, bytes, path_);
}

void StoreFile::truncate(int64_t n_bytes) {
  if (::ftruncate(fd_, n_bytes) != 0) fail_io("shorten", path_, errno);
}

void StoreFile::sync() const {
  if (::fdatasync(fd_) != 0) fail_io("sync", path_, errno);
}

std::vector<std::byte> read_whole_file(const std::filesystem::path& path) {
  struct Descriptor {
    int fd;
    ~Descriptor() { ::close(fd); }
  } const file{open_or_fail(path, O_RDONLY, "open")};
  struct stat info {};
  if (::fstat(file.fd, &info) != 0) fail_io("read", path, errno);
  if (!S_ISREG(info.st_mode)) fail(ErrorCode::kInvalidFile, "{} is not a regular file", path.string());
  std::vector<std::byte> bytes(static_cast<size_t>(info.st_size));
  size_t n_read = 0;
  while (n_read < bytes.size()) {
    const ssize_t n = ::read(file.fd, bytes.data() + n_read, bytes.size() - n_read);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_io("read", path, errno);
    if (n == 0) break;  // it became shorter meanwhile
    n_read += static_cast<size_t>(n);
  }
  bytes.resize(n_read);
  return bytes;
}

}  // namespace forerun
