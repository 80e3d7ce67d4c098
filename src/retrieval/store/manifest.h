// What a store consists of: one small file that names all others.
//
// A text file, replaced as a whole whenever the store changes (core/replace_file.h): a store
// is always what its manifest says, and files that it does not name are leftovers.
//
//   forerun datastore 1           format version
//   tokenizer 8c1f3f6e0a55b1d2    Vocabulary::fingerprint(), hexadecimal
//   vocabulary 49152              tokens of the vocabulary
//   capacity 0                    tokens the store may hold, 0: any number
//   next 7                        the number of the next file
//   sources 0                     bytes of `sources` that count, 0: there is none
//   segment 3 1048576 912         number, tokens, documents; oldest first
//   journal 6                     number; oldest first, the last one is being written
//   checksum 5b0c6df0e8a1bb39     of all lines above, hexadecimal
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/replace_file.h"
#include "retrieval/segment.h"

namespace forerun {

struct Manifest {
  static constexpr int kVersion = 1;

  struct SegmentEntry {
    uint64_t number;
    int64_t n_tokens;
    int64_t n_documents;
    friend bool operator==(const SegmentEntry&, const SegmentEntry&) = default;
  };

  Segment::Identity identity{};
  int64_t capacity_tokens = 0;
  uint64_t next_number = 1;
  int64_t n_source_bytes = 0;
  std::vector<SegmentEntry> segments;
  std::vector<uint64_t> journals;

  friend bool operator==(const Manifest&, const Manifest&) = default;

  std::string to_text() const;
  // Throws Error: {kInvalidFile}, {kUnsupported}. `name` is for its message.
  static Manifest from_text(std::string_view text, const std::string& name);

  // Throws Error: {kNotFound}, {kInvalidFile}, {kUnsupported}, {kIo}.
  static Manifest read(const std::filesystem::path& path);
  // Throws Error{kIo}, and then the old one is still there.
  Replaced write(const std::filesystem::path& path) const;
};

}  // namespace forerun
