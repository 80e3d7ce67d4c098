// A file of records that only grows. Each record has its length and a checksum, so that
// whatever a crash leaves behind, the records that were written are told from the rest.
//
// On disk, little-endian: a header of 40 bytes (magic "FRLG", u32 version, u32 kind,
// u32 n_vocab, u64 tokenizer, u64 0, u64 checksum of the others), then records: u32 marker
// "FREC", u32 n_bytes, u64 checksum of (offset of the record, n_bytes, payload), the
// payload, zeros up to a multiple of 8 bytes.
//
// A record is written by one call of the system, so it survives the end of the process at
// any moment after append() returned; sync() makes it survive a power cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "retrieval/segment.h"
#include "retrieval/store/files.h"

namespace forerun {

// What a log is of.
struct LogIdentity {
  enum class Kind : uint32_t { kJournal = 1, kSources = 2 };
  Kind kind;
  Segment::Identity text;
};

// What a log holds.
struct LogContents {
  std::vector<std::byte> bytes;
  std::vector<std::span<const std::byte>> records;  // in `bytes`
  int64_t n_good_bytes = 0;                         // the header and the whole records
  int64_t n_torn_bytes = 0;                         // behind them: a record that was never finished
  // Records that were not read although others follow them, each as one.
  int n_damaged = 0;
};

enum class Damage {
  kFail,  // is an Error{kInvalidFile}
  kSkip,  // is skipped and counted
};

struct LogReading {
  Damage damage = Damage::kFail;
  // Only the first bytes of the file, which must have so many.
  std::optional<int64_t> n_bytes = std::nullopt;
};

// Reads a log; a writer may append to it meanwhile. An unfinished record at the end is
// what a crash leaves and no damage. Throws Error: {kNotFound}, {kInvalidFile}: not such a
// log, or damaged, or of another tokenizer; {kUnsupported}: of a newer version.
LogContents read_log(const std::filesystem::path& path, const LogIdentity& identity,
                     const LogReading& reading = {});

// Writes a log. Not thread-safe, except that sync() may run beside append().
class RecordLog {
 public:
  // Makes an empty log, on the disk when it returns (its name is not: sync_folder()).
  static RecordLog create(const std::filesystem::path& path, const LogIdentity& identity);
  // Goes on behind the first `n_good_bytes` and cuts off the rest.
  static RecordLog append_to(const std::filesystem::path& path, int64_t n_good_bytes);

  // Throws Error{kIo}, and then the log is as it was.
  void append(std::span<const std::byte> payload);
  // Takes back what was appended behind the first `n_bytes`.
  void cut(int64_t n_bytes);
  void sync() const { file_.sync(); }

  int64_t n_bytes() const { return n_bytes_; }
  const std::filesystem::path& path() const { return file_.path(); }

 private:
  RecordLog(StoreFile file, int64_t n_bytes) : file_(std::move(file)), n_bytes_(n_bytes) {}

  StoreFile file_;
  int64_t n_bytes_;
  std::vector<std::byte> buffer_;
};

}  // namespace forerun
