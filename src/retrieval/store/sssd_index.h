// Reads the index files (.idx) of the SSSD library.
//
// Little-endian, without a magic number. Vocabularies of more than 65,536 tokens: an int32
// 0, then tokens of 4 bytes; others: tokens of 2 bytes, which are unsigned (the library's
// own reader takes them for signed and cannot find ids from 32,768 on). Then chunks: u32
// number of bytes, tokens, u32 number of bytes, an int32 per token, its suffix array, which
// is of no use here. Entries follow each other without a mark, except that those who build
// such files begin each entry with the token that begins texts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "core/ids.h"
#include "core/mapped_file.h"

namespace forerun {

class SssdIndex {
 public:
  // Throws Error: {kNotFound}, {kInvalidFile} not such a file.
  SssdIndex(const std::filesystem::path& path, int n_vocab);

  // The tokens of the next chunk; nullopt behind the last. Throws Error{kInvalidFile}: it
  // is cut short, or has tokens that the vocabulary has not.
  std::optional<std::vector<TokenId>> next_chunk();

  double share_read() const;

 private:
  std::span<const std::byte> take_block();

  std::filesystem::path path_;
  int n_vocab_;
  MappedFile file_;
  size_t offset_ = 0;
  bool wide_;  // 4 bytes per token
};

// A text for Segment::build(): what stands between two `separator` tokens (nullopt: all of
// it) becomes a document, and documents longer than `max_tokens` become several.
std::vector<TokenId> documents_between(std::span<const TokenId> tokens, std::optional<TokenId> separator,
                                       int64_t max_tokens);

}  // namespace forerun
