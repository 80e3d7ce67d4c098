#include "core/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.h"

namespace forerun {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    const int reason = errno;
    fail(reason == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, "cannot open {}: {}", path.string(),
         std::strerror(reason));
  }
  struct stat info {};
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    fail(ErrorCode::kInvalidFile, "{} is not a regular file", path.string());
  }
  size_ = static_cast<size_t>(info.st_size);
  if (size_ > 0) {
    void* address = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, fd, 0);
    const int reason = errno;
    ::close(fd);
    if (address == MAP_FAILED) {
      fail(ErrorCode::kIo, "cannot map {}: {}", path.string(), std::strerror(reason));
    }
    data_ = static_cast<const std::byte*>(address);
  } else {
    ::close(fd);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    ::munmap(const_cast<std::byte*>(data_), size_);
  }
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

void MappedFile::load(size_t offset, size_t length) const {
  const size_t first = offset - offset % static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  if (offset >= size_ || length > size_ - offset) return;
  // All of it is asked for before any of it is waited for.
  for (const int advice : {MADV_WILLNEED, MADV_POPULATE_READ}) {
    ::madvise(const_cast<std::byte*>(data_) + first, offset + length - first, advice);
  }
}

void MappedFile::release(size_t offset, size_t length) const {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t first = (offset + page - 1) / page * page;
  const size_t last = (offset + length) / page * page;
  if (data_ != nullptr && first < last && last <= size_) {
    ::madvise(const_cast<std::byte*>(data_) + first, last - first, MADV_DONTNEED);
  }
}

}  // namespace forerun
