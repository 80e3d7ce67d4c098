// Which inputs a store was built from, so that none is added twice.
//
// An input is known by a hash of its contents, so it may move, and a store tells nobody
// where its text came from. On disk: a log of records of u64 hashes; an empty record says
// that none of those before it counts any more.
//
// Which input a document is of is not known. So when a repair loses documents, it forgets all
// inputs and notes instead each document that is left, by a hash of its tokens: reading the
// inputs again then brings back what was lost, and nothing else.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <unordered_set>

#include "core/ids.h"
#include "retrieval/segment.h"
#include "retrieval/store/record_log.h"

namespace forerun {

// What a document is known by.
uint64_t hash_of_document(std::span<const TokenId> tokens);

// Not thread-safe.
class Sources {
 public:
  // Those in the first `n_bytes` of the file (0: there is none).
  Sources(std::filesystem::path path, const Segment::Identity& identity, int64_t n_bytes);

  bool contains(uint64_t hash) const { return hashes_.contains(hash); }
  size_t size() const { return hashes_.size(); }
  const std::unordered_set<uint64_t>& hashes() const { return hashes_; }

  // Writes more of them behind those that count; how many bytes count with them. They do
  // not until the manifest says so and then added() is called. Throws Error{kIo}.
  int64_t write(std::span<const uint64_t> hashes) const;
  // The same, but they count instead of those there are.
  int64_t write_instead(std::span<const uint64_t> hashes) const;
  void added(std::span<const uint64_t> hashes, int64_t n_bytes);

 private:
  RecordLog open_log() const;

  std::filesystem::path path_;
  Segment::Identity identity_;
  int64_t n_bytes_;
  std::unordered_set<uint64_t> hashes_;
};

}  // namespace forerun
