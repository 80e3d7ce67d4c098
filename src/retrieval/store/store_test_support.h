// What the tests of this folder share.
#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "retrieval/segment.h"
#include "retrieval/store/datastore.h"
#include "support/temp_dir.h"

namespace forerun::test {

using Document = std::vector<TokenId>;
using Documents = std::vector<Document>;

constexpr Segment::Identity kIdentity{.tokenizer = 0xFEDCBA9876543210, .n_vocab = 1000};

inline Document document(std::initializer_list<int> ids) {
  Document tokens;
  for (const int id : ids) tokens.push_back(TokenId{id});
  return tokens;
}

// Begins with two tokens that say which one it is, so no two are equal; some tokens more.
inline Document numbered_document(int number, int n_more = 5) {
  Document tokens{TokenId{number / 1000}, TokenId{number % 1000}};
  for (int i = 0; i < n_more; ++i) tokens.push_back(TokenId{(number * 7 + i * 13) % 1000});
  return tokens;
}

// All documents of a store's segments, oldest first.
inline std::vector<Document> documents_in(const SegmentList& segments) {
  std::vector<Document> documents(1);
  for (const auto& segment : segments) {
    for (int64_t place = 0; place < segment->n_tokens(); ++place) {
      if (segment->token(place) == Segment::kSeparator) {
        documents.emplace_back();
      } else {
        documents.back().push_back(segment->token(place));
      }
    }
  }
  documents.pop_back();
  return documents;
}

inline int64_t count_occurrences(const SegmentList& segments, std::span<const TokenId> tokens) {
  int64_t n = 0;
  for (const auto& segment : segments) n += segment->find(tokens).size();
  return n;
}

// Nothing happens by itself.
inline StoreOptions quiet_options() {
  return {.identity = kIdentity, .background = false};
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

inline void write_text(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary) << text;
}

// The names and contents of all files in a folder.
inline std::vector<std::pair<std::string, std::string>> files_in(const std::filesystem::path& folder) {
  std::vector<std::pair<std::string, std::string>> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.emplace_back(entry.path().filename().string(), read_text(entry.path()));
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The code of the Error that `function` throws; nullopt if it throws none.
template <typename Function>
std::optional<ErrorCode> error_of(Function function) {
  try {
    function();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

}  // namespace forerun::test
