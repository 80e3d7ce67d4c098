// What a damaged segment file still holds.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "retrieval/segment.h"

namespace forerun {

// What the file is known to be, from elsewhere: its own header may be what is damaged.
struct SegmentClaim {
  Segment::Identity identity;
  int64_t n_tokens;
  int64_t n_documents;
};

// The documents that are certainly as they were written, in order, each with its separator as
// Segment::build() takes them: those of which every block of the text, the end of the document
// before included, matches a checksum of its own or lies in larger blocks that match theirs.
// The index does not matter. Of files of version 1, which have only the larger blocks, less is
// left where the text is damaged. Throws Error if the file cannot be read.
std::vector<TokenId> salvage_segment(const std::filesystem::path& path, const SegmentClaim& claim);

}  // namespace forerun
