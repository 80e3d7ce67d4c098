// A store of text that grows while it is being searched.
//
// A store is a folder with immutable segments (retrieval/segment.h) and a journal
// (docs/datastore.md has the format and what is guaranteed when):
//
//   auto store = Datastore::open("answers", Datastore::Mode::kCreate,
//                                {.identity = {{vocabulary.fingerprint(), n_vocab}}});
//   store->add(tokens);                     // journalled and searchable
//   const auto segments = store->snapshot();
//
// Any number of processes may read a store while one writes to it; a reader sees the store
// as it was when opened. A writer's own snapshots have every document whose add() returned.
//
// Thread-safe. Snapshots and added documents never wait for merging, folding or the disk's
// cache being written; only one document is added at a time. A snapshot outlives the store.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "retrieval/segment.h"
#include "retrieval/store/maintenance.h"

namespace forerun {

struct StoreOptions {
  // Whose tokens the store shall hold. One that exists is refused if it holds others;
  // needed to make one.
  std::optional<Segment::Identity> identity = std::nullopt;

  // The rest is for writers.

  // How many tokens the store may hold, 0: any number. It forgets the oldest. Not given:
  // as before, or any number.
  std::optional<int64_t> capacity_tokens = std::nullopt;
  // Live text of this size is folded into files.
  int64_t fold_tokens = int64_t{512} << 10;
  // Segments are not merged beyond this. Merging takes 12 bytes of memory per token.
  int64_t max_segment_tokens = int64_t{64} << 20;
  // Live text reaches the disk this often, and a power cut loses no more. 0: each document
  // does before add() returns. (The end of the process loses nothing, whatever this is.)
  std::chrono::milliseconds sync_interval{1000};
  // Folds and merges by itself, when the machine is idle.
  bool background = true;
  // Gets what went wrong in the background, as one line, on a thread of the store.
  std::function<void(const std::string&)> on_problem = {};
};

struct StoreInfo {
  struct File {
    std::string name;
    int64_t n_tokens;
    int64_t n_documents;
    int64_t n_bytes;
  };
  std::filesystem::path path;
  Segment::Identity identity;
  int64_t capacity_tokens;  // 0: any number
  int64_t n_tokens;         // live text included; so are the ends of documents
  int64_t n_documents;
  int64_t n_live_tokens;  // not in files yet, but in the journal
  int64_t n_live_documents;
  int64_t n_bytes;         // of all files
  int64_t n_memory_bytes;  // of live text and its index
  int n_segments;          // that are searched
  std::vector<File> files;
  std::string problem;  // the last one, empty if there was none
};

class Datastore {
 public:
  enum class Mode {
    kRead,    // changes nothing; the store must exist
    kWrite,   // the store must exist
    kCreate,  // writes; makes the store if there is none
  };

  // Throws Error: {kNotFound} no such store; {kInvalidArgument} of another tokenizer, or
  // the folder is something else; {kInvalidFile} damaged; {kUnsupported} of a newer
  // version; {kIo}: cannot be read, cannot be written, or somebody else writes to it.
  static std::unique_ptr<Datastore> open(const std::filesystem::path& path, Mode mode,
                                         const StoreOptions& options);
  // Whether there is a store, of whatever kind and state.
  static bool exists(const std::filesystem::path& path) { return StoreFiles::exist(path); }
  // Does not wait for folding: the journal has what is missing in files.
  ~Datastore();
  Datastore(const Datastore&) = delete;
  Datastore& operator=(const Datastore&) = delete;

  // All segments, oldest first.
  std::shared_ptr<const SegmentList> snapshot() const { return table_->snapshot(); }
  StoreInfo info() const;
  // What the folder has, the manifest first; all of it is the store.
  std::vector<std::filesystem::path> files() const { return files_->present(); }
  // Hashes of what its text was made from (see add_text()). Throws Error.
  std::vector<uint64_t> sources() const;

  // What follows is for writers; a store opened to read throws Error{kInvalidArgument}.

  // Adds a document. When it returns, the document is found by everybody who takes a
  // snapshot and survives the end of the process. Throws Error: {kInvalidArgument} a token
  // is not of the vocabulary; {kIo}, a full disk for example; {kOutOfMemory}. Then nothing was added,
  // and the store can be used as before.
  void add(std::span<const TokenId> document);
  // Returns when all documents survive a power cut. Throws Error{kIo}.
  void flush();

  // For many documents at once: adds a text, each document followed by
  // Segment::kSeparator, as a file. `sources` are hashes of what it was made from; they
  // count as present together with the text. False: given up by `progress`. Throws
  // Error{kInvalidArgument} if the text is not of the vocabulary, {kIo}.
  bool add_text(std::vector<TokenId> text, std::span<const uint64_t> sources, const Effort& effort);
  // The same of several texts, a file each, which count all together or not at all. What
  // `next` throws is thrown here.
  bool add_texts(const TextReader& next, const Effort& effort);
  bool has_source(uint64_t hash) const;
  // Whether a repair kept this document but forgot what it was made from (sources.h). Whoever
  // adds from a source that the store does not have leaves such documents out.
  bool was_kept(std::span<const TokenId> document) const;

  // Folds live text into files and merges where it is due, now. False: given up.
  bool tidy(const Effort& effort);
  // Makes as few segments as max_segment_tokens allows. False: given up.
  bool compact(const Effort& effort);

 private:
  // What a writer has beside what a reader has.
  struct Writer;

  explicit Datastore(std::unique_ptr<StoreFiles> files);

  void load(Mode mode, int64_t max_segment_tokens);
  void load_segments(int64_t max_segment_tokens);
  void begin_writing(const StoreOptions& options);
  Writer& writer() const;
  void note_problem(const std::string& message);

  std::unique_ptr<StoreFiles> files_;
  std::unique_ptr<SegmentTable> table_;
  int64_t n_good_journal_bytes_ = 0;  // of the newest journal, when it was opened
  mutable std::mutex problem_mutex_;
  std::string problem_;
  std::unique_ptr<Writer> writer_;  // nullptr: read-only
};

}  // namespace forerun
