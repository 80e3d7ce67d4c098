// The text of segments, to make new ones of it.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "retrieval/segment.h"

namespace forerun {

int64_t count_tokens(std::span<const std::shared_ptr<const Segment>> segments);
int64_t count_documents(std::span<const std::shared_ptr<const Segment>> segments);

// The texts one after the other, as Segment::build() takes them. Throws Error{kInvalidFile}
// if a damaged file has tokens that its vocabulary has not.
std::vector<TokenId> concatenated_text(std::span<const std::shared_ptr<const Segment>> segments);

// The sizes in tokens.
std::vector<int64_t> sizes_of(std::span<const std::shared_ptr<const Segment>> segments);

}  // namespace forerun
