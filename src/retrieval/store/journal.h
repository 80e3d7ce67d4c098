// Live text that is not in a segment file yet: a log of documents, one record each, a
// record being the document's tokens in 32 bits.
#pragma once

#include <filesystem>
#include <span>
#include <vector>

#include "core/ids.h"
#include "retrieval/store/record_log.h"

namespace forerun {

struct JournalContents {
  // Each document followed by Segment::kSeparator, as segments are made of.
  std::vector<TokenId> text;
  int64_t n_documents = 0;
  int64_t n_good_bytes = 0;
  int64_t n_torn_bytes = 0;  // see LogContents
  int n_damaged = 0;
};

// Throws what read_log() throws.
JournalContents read_journal(const std::filesystem::path& path, const Segment::Identity& identity,
                             Damage damage = Damage::kFail);

// Not thread-safe, except that sync() may run beside append().
class Journal {
 public:
  static Journal create(const std::filesystem::path& path, const Segment::Identity& identity);
  static Journal append_to(const std::filesystem::path& path, int64_t n_good_bytes);

  // The document survives the end of the process when this returns. Throws Error{kIo}, and
  // then the journal is as it was.
  void append(std::span<const TokenId> document) { log_.append(std::as_bytes(document)); }
  void cut(int64_t n_bytes) { log_.cut(n_bytes); }
  // All documents survive a power cut when this returns.
  void sync() const { log_.sync(); }
  int64_t n_bytes() const { return log_.n_bytes(); }

 private:
  explicit Journal(RecordLog log) : log_(std::move(log)) {}
  RecordLog log_;
};

}  // namespace forerun
