// A store's folder: its files, and the manifest that says which of them count.
//
//   manifest         what the store consists of (manifest.h)
//   lock             who writes (write_lock.h)
//   segment-000003   text with its index (retrieval/segment_file.h)
//   journal-000006   live text (journal.h)
//   sources          which inputs are in it (sources.h)
//
// A change writes new files, then replaces the manifest, then removes the files that it no
// longer names. What ends in between leaves files that no manifest names; the next writer
// removes them. Readers of other processes that opened a file keep it until they close it.
//
// Thread-safe for manifest(); everything else is used by one thread at a time.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/error.h"
#include "retrieval/store/journal.h"
#include "retrieval/store/manifest.h"
#include "retrieval/store/write_lock.h"

namespace forerun {

// Throws Error{kInvalidFile} that says what is damaged and what to do.
[[noreturn]] void fail_with_repair_advice(const Error& damage, const std::filesystem::path& folder);

class StoreFiles {
 public:
  // A store to read. Throws Error{kNotFound} if there is none, and what Manifest::read()
  // throws.
  static std::unique_ptr<StoreFiles> open_to_read(const std::filesystem::path& folder);
  // A store to write, locked; leftovers are removed.
  static std::unique_ptr<StoreFiles> open_to_write(const std::filesystem::path& folder);
  // The same, but makes the store if there is none. Throws Error{kInvalidArgument} if the
  // folder has other things in it. A store that cannot be made leaves nothing behind.
  static std::unique_ptr<StoreFiles> create(const std::filesystem::path& folder,
                                            const Segment::Identity& identity);

  // Whether the folder is a store.
  static bool exist(const std::filesystem::path& folder);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path segment_path(uint64_t number) const;
  std::filesystem::path journal_path(uint64_t number) const;
  std::filesystem::path sources_path() const;

  // All files of the store that there are, the manifest first: without it there is no store.
  std::vector<std::filesystem::path> present() const;

  Manifest manifest() const;
  // Reads it again; false: it is the same.
  bool reload();

  // A number for a new file.
  uint64_t take_number() { return next_number_++; }

  // Replaces the manifest and removes the files that only the former one names. Throws
  // Error{kIo}, and then the store is as it was (the caller removes its new files).
  void commit(Manifest next);

  // The segments of the manifest. Throws Error{kInvalidFile} if one is damaged or is not
  // the one that the manifest means.
  SegmentList open_segments() const;

 private:
  StoreFiles(std::filesystem::path folder, Manifest manifest);

  void remove_leftovers() const;

  std::filesystem::path folder_;
  std::unique_ptr<WriteLock> lock_;
  mutable std::mutex mutex_;
  Manifest manifest_;
  uint64_t next_number_;
};

}  // namespace forerun
