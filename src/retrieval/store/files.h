// Open files of a store, and making sure that what was written is on the disk.
//
// Everything here throws Error{kIo}, or {kNotFound}, with the file's name and the system's
// reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

namespace forerun {

// An open file. Not thread-safe, except that sync() may run beside everything else.
class StoreFile {
 public:
  // Makes the file, or empties it.
  static StoreFile create(const std::filesystem::path& path);
  // For writing; it must exist.
  static StoreFile open(const std::filesystem::path& path);

  StoreFile(StoreFile&& other) noexcept;
  StoreFile& operator=(StoreFile&&) = delete;
  ~StoreFile();

  const std::filesystem::path& path() const { return path_; }
  void write_at(int64_t offset, std::span<const std::byte> bytes);
  void truncate(int64_t n_bytes);
  // Returns when what was written is on the disk.
  void sync() const;

 private:
  StoreFile(std::filesystem::path path, int fd) : path_(std::move(path)), fd_(fd) {}

  std::filesystem::path path_;
  int fd_;
};

std::vector<std::byte> read_whole_file(const std::filesystem::path& path);

}  // namespace forerun
