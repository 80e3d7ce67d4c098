// Checksums that a hub lists files with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>

namespace forerun {

struct Checksum {
  // Large files have their SHA-256, others what git knows them by.
  enum class Kind { kSha256, kGitBlob };
  Kind kind = Kind::kSha256;
  std::string hex;  // in small letters
};

// Of bytes as they come. Not thread-safe.
class ChecksumOfBytes {
 public:
  // `n_bytes`: of the whole file.
  ChecksumOfBytes(Checksum::Kind kind, int64_t n_bytes);
  ~ChecksumOfBytes();

  void add(std::span<const std::byte> bytes);
  // In hexadecimal; nothing is added any more.
  std::string finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Adds the first `n_bytes` of an open file. `check` is called now and then, and may throw. Throws Error.
void add_file(ChecksumOfBytes& checksum, int fd, int64_t n_bytes, const std::filesystem::path& path,
              const std::function<void()>& check);

}  // namespace forerun
