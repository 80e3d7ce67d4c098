// What keeps a store in shape: folding live text into files, merging segments, dropping
// the oldest when the store is full.
//
// All of it makes new segments beside the ones in use, which takes long and holds nobody
// up, and then puts them in place, which takes a moment. When something fails or is given
// up, the store is as it was.
//
// Thread-safe. One change of the files happens at a time, and one merge in memory; adding
// documents and taking snapshots never waits for either.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "retrieval/store/live_text.h"
#include "retrieval/store/segment_table.h"
#include "retrieval/store/sources.h"
#include "retrieval/store/store_files.h"

namespace forerun {

struct MergeLimits {
  int64_t fold_tokens;         // live text that is worth a file
  int64_t max_segment_tokens;  // segments are not merged beyond this

  // A store of some capacity (0: any) consists of at least kMinSegments when it is full,
  // so that not too much is dropped at once.
  static constexpr int64_t kMinSegments = 4;
  MergeLimits for_capacity(int64_t capacity_tokens) const;
};

// How to build a segment.
struct Effort {
  int n_threads = 1;
  bool when_idle = false;  // see run_when_idle()
  Segment::Progress progress = {};
};

// Documents, each followed by Segment::kSeparator, and hashes of what they were made from.
struct SourcedText {
  std::vector<TokenId> text;
  std::vector<uint64_t> sources;
};
// The next text, nullopt: there is no more.
using TextReader = std::function<std::optional<SourcedText>()>;

class Maintenance {
 public:
  struct Parts {
    StoreFiles& files;
    SegmentTable& table;
    LiveText& live;
  };
  // The limits are for the capacity that the manifest has.
  Maintenance(const Parts& parts, const MergeLimits& limits);

  // All of these throw Error: {kIo}, {kInvalidFile} a file that is to be merged is
  // damaged. False: given up.

  // Folds live text into files and merges files as merge_policy.h says.
  bool tidy(const Effort& effort);
  bool wants_tidy() const;
  // Makes as few segments as the limits allow, all of them files.
  bool compact(const Effort& effort);
  // Adds texts of many documents, a file each, and notes where they came from: all or none.
  bool add_texts(const TextReader& next, const Effort& effort);

  // Merges live text in memory as merge_policy.h says; false: there was nothing to do.
  bool merge_in_memory(const Effort& effort);

  bool has_source(uint64_t hash) const;

  // Somebody waits for their turn to change files, so work in the background gives up.
  bool is_wanted() const { return n_waiting_ > 0; }

 private:
  // A segment that lies in a file, as the table and as the manifest know it.
  struct FileSegment {
    std::shared_ptr<const Segment> segment;
    Manifest::SegmentEntry entry;
  };
  // The new files of a change; removes them unless it is committed.
  class NewFiles;

  std::unique_lock<std::mutex> take_turn();
  // Freezes the live text by beginning another journal, unless some is frozen already.
  void freeze_live_text();
  bool fold_frozen(const Effort& effort);
  bool fold_all(const Effort& effort);
  // Drops the first frozen segments and makes files of those from `first` on.
  bool rewrite(size_t n_dropped, size_t first, const Effort& effort);
  // A new file of a text; nullopt: given up.
  std::optional<FileSegment> write_segment(const std::function<std::vector<TokenId>()>& text,
                                           const Effort& effort, NewFiles& new_files);
  void commit(Manifest manifest, const std::vector<FileSegment>& files, NewFiles& new_files);

  StoreFiles& files_;
  SegmentTable& table_;
  LiveText& live_;
  const Segment::Identity identity_;
  const int64_t capacity_tokens_;
  const MergeLimits limits_;

  std::mutex turn_;     // to change files
  std::mutex merging_;  // in memory
  std::atomic<int> n_waiting_ = 0;
  mutable std::mutex sources_mutex_;
  Sources sources_;
};

}  // namespace forerun
