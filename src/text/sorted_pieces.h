// The pieces of all tokens that stand for text, sorted, so that whoever walks along them begins each
// where it parts from the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/ids.h"

namespace forerun {

class SortedPieces {
 public:
  // None may be empty.
  explicit SortedPieces(std::vector<std::pair<std::string, TokenId>> pieces);

  size_t size() const { return entries_.size(); }
  TokenId token(size_t i) const { return entries_[i].token; }
  std::string_view piece(size_t i) const {
    return std::string_view(bytes_).substr(entries_[i].first, entries_[i].n_bytes);
  }
  // The bytes that it shares with the one before.
  size_t n_shared(size_t i) const { return entries_[i].n_shared; }

 private:
  struct Entry {
    TokenId token;
    size_t first;  // in bytes_
    uint32_t n_bytes;
    uint32_t n_shared;
  };

  std::string bytes_;
  std::vector<Entry> entries_;
};

}  // namespace forerun
