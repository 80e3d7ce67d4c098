// A file mapped read-only into memory.
//
// The mapping is shared with the page cache, so two processes that map one model
// hold one copy. Immutable after construction; safe to read from any thread. The file
// must not be made shorter meanwhile: reading past its new end kills the process, as
// with every mapped file. Replacing it by renaming another over it is fine.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace forerun {

class MappedFile {
 public:
  // Throws Error when the file cannot be opened or mapped, or is no regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Reads [offset, offset + length) into memory and waits for that, as far as the system does such a
  // thing. Errors of the disk are left to whoever reads the bytes.
  void load(size_t offset, size_t length) const;

  // Gives the pages that lie wholly in [offset, offset + length) back to the page
  // cache: their bytes were copied elsewhere and will not be read from here again
  // soon. Reading them later stays correct.
  void release(size_t offset, size_t length) const;

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace forerun
