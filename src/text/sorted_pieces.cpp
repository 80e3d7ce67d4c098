#include "text/sorted_pieces.h"

#include <algorithm>

namespace forerun {

SortedPieces::SortedPieces(std::vector<std::pair<std::string, TokenId>> pieces) {
  std::ranges::sort(pieces);
  entries_.reserve(pieces.size());
  std::string_view before;
  for (const auto& [piece, token] : pieces) {
    const auto parting = std::ranges::mismatch(piece, before).in1;
    entries_.push_back({.token = token,
                        .first = bytes_.size(),
                        .n_bytes = static_cast<uint32_t>(piece.size()),
                        .n_shared = static_cast<uint32_t>(parting - piece.begin())});
    bytes_ += piece;
    before = piece;
  }
}

}  // namespace forerun
