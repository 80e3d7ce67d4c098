#include "retrieval/store/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "core/error.h"

namespace forerun {
namespace {

constexpr mode_t kMode = 0644;

std::string_view advice(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT: return "; free some space and try again";
    case EFBIG: return "; the limit on the size of files is too low (ulimit -f)";
    case EROFS: return "; a store on it can only be read";
    case EACCES:
    case EPERM: return "; a store of somebody else can only be read";
    default: return "";
  }
}

int open_or_fail(const std::filesystem::path& path, int flags, std::string_view verb) {
  const int fd = ::open(path.c_str(), flags | O_CLOEXEC, kMode);
  if (fd < 0) fail_io(verb, path, errno);
  return fd;
}

}  // namespace

void fail_io(std::string_view verb, const std::filesystem::path& path, int number) {
  fail(number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot {} {}: {}{}", verb,
       path.string(), std::strerror(number), advice(number));
}

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
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd_, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_io("write", path_, errno);
    if (n == 0) fail_io("write", path_, ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += n;
  }
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

bool sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  // Some file systems have no such call and need none.
  const bool synced = ::fsync(fd) == 0 || errno == EINVAL;
  ::close(fd);
  return synced;
}

Replaced replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const std::filesystem::path temporary = path.string() + std::string(kTemporarySuffix);
  try {
    StoreFile file = StoreFile::create(temporary);
    file.write_at(0, bytes);
    file.sync();
    if (::rename(temporary.c_str(), path.c_str()) != 0) fail_io("replace", path, errno);
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
  return sync_folder(path.parent_path()) ? Replaced::kDurable : Replaced::kVisible;
}

}  // namespace forerun
