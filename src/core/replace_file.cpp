#include "core/replace_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "core/error.h"

namespace forerun {
namespace {

constexpr mode_t kMode = 0644;

std::string_view advice(int number) {
  switch (number) {
    case ENOSPC:
    case EDQUOT: return "; free some space and try again";
    case EFBIG: return "; the limit on the size of files is too low (ulimit -f)";
    case EROFS:
    case EACCES:
    case EPERM: return "; what is there can only be read";
    default: return "";
  }
}

// Where a link leads to. Devices and the like are not replaced.
std::filesystem::path replaced_by(const std::filesystem::path& path) {
  std::error_code error;
  const auto there = std::filesystem::status(path, error);
  if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there)) {
    fail(ErrorCode::kIo, "cannot write {}: it is not a regular file", path.string());
  }
  if (!std::filesystem::is_symlink(path, error)) return path;
  auto target = std::filesystem::canonical(path, error);
  return error ? path : target;
}

}  // namespace

void fail_io(std::string_view verb, const std::filesystem::path& path, int number) {
  fail(number == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot {} {}: {}{}", verb,
       path.string(), std::strerror(number), advice(number));
}

void write_at(int fd, int64_t offset, std::span<const std::byte> bytes,
              const std::filesystem::path& path) {
  while (!bytes.empty()) {
    const ssize_t n = ::pwrite(fd, bytes.data(), bytes.size(), offset);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail_io("write", path, errno);
    if (n == 0) fail_io("write", path, ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(n));
    offset += n;
  }
}

bool sync_folder(const std::filesystem::path& folder) {
  const int fd = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return false;
  // Some file systems have no such call and need none.
  const bool is_synced = ::fsync(fd) == 0 || errno == EINVAL;
  ::close(fd);
  return is_synced;
}

ReplacementFile::ReplacementFile(const std::filesystem::path& path)
    : path_(replaced_by(path)), temporary_(fmt::format("{}.{}{}", path_.string(), ::getpid(), kSuffix)) {
  fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (fd_ >= 0) return;
  if (errno != ENOENT) fail_io("write", path_, errno);
  fail(ErrorCode::kIo, "cannot write {}: there is no folder {}", path_.string(),
       path_.parent_path().string());
}

ReplacementFile::~ReplacementFile() {
  ::close(fd_);
  if (!is_finished_) ::unlink(temporary_.c_str());
}

void ReplacementFile::write_at(int64_t offset, std::span<const std::byte> bytes) {
  forerun::write_at(fd_, offset, bytes, path_);
}

void ReplacementFile::append(std::span<const std::byte> bytes) {
  write_at(end_, bytes);
  end_ += static_cast<int64_t>(bytes.size());
}

Replaced ReplacementFile::finish() {
  CHECK(!is_finished_);
  if (::fsync(fd_) != 0) fail_io("write", path_, errno);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail_io("replace", path_, errno);
  is_finished_ = true;
  return sync_folder(path_.parent_path()) ? Replaced::kDurable : Replaced::kVisible;
}

Replaced replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  ReplacementFile file(path);
  file.append(bytes);
  return file.finish();
}

Replaced replace_file(const std::filesystem::path& path, std::string_view text) {
  return replace_file(path, std::as_bytes(std::span(text)));
}

}  // namespace forerun
