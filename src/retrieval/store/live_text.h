// Documents as they come: into the journal, and searchable at once.
//
// The newest documents form the tail, a small segment that is made anew with each of them;
// when it is full, another one begins. So adding costs little and the same however large
// the store is, and merging is left to others.
//
// Thread-safe.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "retrieval/store/journal.h"
#include "retrieval/store/segment_table.h"

namespace forerun {

class LiveText {
 public:
  // Indexing a tail of this size takes a fraction of a millisecond.
  static constexpr int64_t kMaxTailTokens = 4096;

  struct Settings {
    Segment::Identity identity;
    int64_t max_tail_tokens = kMaxTailTokens;
    bool sync_each = false;  // a document survives a power cut when add() returns
  };

  LiveText(const Settings& settings, Journal journal, SegmentTable& table);

  // What happened to the table.
  enum class Added { kNothing, kTailGrew, kTailBegan };
  // Throws Error: {kInvalidArgument} a token is not of the vocabulary, {kIo}; then nothing
  // was added. An empty document is nothing.
  Added add(std::span<const TokenId> document);

  // Later documents go to `next`; all text so far is frozen (segment_table.h). The former
  // journal. No merge in memory at the same time.
  std::shared_ptr<const Journal> rotate(Journal next);

  // What was added before survives a power cut when this returns. Throws Error{kIo}.
  void sync();

  int64_t n_journal_bytes() const;

 private:
  const Settings settings_;
  SegmentTable& table_;
  mutable std::mutex mutex_;
  std::shared_ptr<Journal> journal_;
  bool synced_ = true;
  std::vector<TokenId> tail_;  // the text of the newest segment; empty: begin another one
};

}  // namespace forerun
