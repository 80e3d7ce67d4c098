// Files that survive a crash: writing them, and making sure that they are on the disk.
//
// Everything here throws Error{kIo}, or {kNotFound}, with the file's name and the system's
// reason.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

namespace forerun {

// Throws the Error for `number` (errno) after trying to `verb` ("write") the file.
[[noreturn]] void fail_io(std::string_view verb, const std::filesystem::path& path, int number);

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

// Makes the names in a folder as durable as the files. False: the disk would not.
bool sync_folder(const std::filesystem::path& folder);

enum class Replaced {
  kDurable,  // for good
  kVisible,  // done, but a power cut might bring the former contents back
};
// Puts `bytes` in place of the file's contents: whatever happens, it holds either all of
// the old or all of the new ones. Throws Error{kIo}, and then it holds the old ones.
Replaced replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes);

// Ends the names of files that are not whole yet.
constexpr std::string_view kTemporarySuffix = ".part";

}  // namespace forerun
