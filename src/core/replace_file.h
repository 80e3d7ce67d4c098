// Puts a new file in the place of an old one: whatever happens meanwhile, the name stands for
// all of the old contents or all of the new ones.
//
// The new file is written beside the old one, brought to the disk and renamed. What fails
// throws Error{kIo} with the file's name, the system's reason and, where there is one, advice;
// nothing is left behind then.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

namespace forerun {

// Throws the Error for `number` (errno) after trying to `verb` ("write") the file: {kNotFound}
// where there is none, {kIo} otherwise.
[[noreturn]] void fail_io(std::string_view verb, const std::filesystem::path& path, int number);

// Writes all of `bytes` to an open file. `path` is for the Error.
void write_at(int fd, int64_t offset, std::span<const std::byte> bytes,
              const std::filesystem::path& path);

// Makes the names in a folder as durable as the files. False: the disk would not.
bool sync_folder(const std::filesystem::path& folder);

enum class Replaced {
  kDurable,  // for good
  kVisible,  // done, but a power cut might bring the former contents back
};

// The new contents while they are written; gone unless finished. Several processes may
// replace the same file at once: one of them is the last. Not thread-safe.
class ReplacementFile {
 public:
  // Ends the names of files that are not whole yet.
  static constexpr std::string_view kSuffix = ".part";

  explicit ReplacementFile(const std::filesystem::path& path);
  ~ReplacementFile();
  ReplacementFile(const ReplacementFile&) = delete;
  ReplacementFile& operator=(const ReplacementFile&) = delete;

  void write_at(int64_t offset, std::span<const std::byte> bytes);
  // Behind what was appended before.
  void append(std::span<const std::byte> bytes);

  // It takes its place.
  Replaced finish();

 private:
  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int fd_ = -1;
  int64_t end_ = 0;  // of what was appended
  bool is_finished_ = false;
};

// All at once.
Replaced replace_file(const std::filesystem::path& path, std::span<const std::byte> bytes);
Replaced replace_file(const std::filesystem::path& path, std::string_view text);

}  // namespace forerun
