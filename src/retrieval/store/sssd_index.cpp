#include "retrieval/store/sssd_index.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "core/error.h"
#include "retrieval/segment.h"

namespace forerun {
namespace {

uint32_t read_u32(std::span<const std::byte> bytes, size_t offset) {
  uint32_t value = 0;
  std::memcpy(&value, bytes.data() + offset, sizeof(value));
  return value;
}

// As it is in the file: std::vector<uint16_t> or std::vector<uint32_t>.
template <typename Stored>
std::vector<TokenId> to_tokens(std::span<const std::byte> block) {
  std::vector<Stored> stored(block.size() / sizeof(Stored));
  if (!stored.empty()) std::memcpy(stored.data(), block.data(), block.size());
  std::vector<TokenId> tokens;
  tokens.reserve(stored.size());
  for (const Stored id : stored) tokens.push_back(TokenId{static_cast<int32_t>(id)});
  return tokens;
}

}  // namespace

SssdIndex::SssdIndex(const std::filesystem::path& path, int n_vocab)
    : path_(path), n_vocab_(n_vocab), file_(path) {
  const auto bytes = file_.bytes();
  if (bytes.size() < 2 * sizeof(uint32_t)) {
    fail(ErrorCode::kInvalidFile, "{} is not an SSSD index: it is too short", path.string());
  }
  wide_ = read_u32(bytes, 0) == 0;
  if (wide_) offset_ = sizeof(uint32_t);
}

std::span<const std::byte> SssdIndex::take_block() {
  const auto bytes = file_.bytes();
  if (bytes.size() - offset_ >= sizeof(uint32_t)) {
    const size_t n_bytes = read_u32(bytes, offset_);
    if (n_bytes <= bytes.size() - offset_ - sizeof(uint32_t)) {
      const auto block = bytes.subspan(offset_ + sizeof(uint32_t), n_bytes);
      offset_ += sizeof(uint32_t) + n_bytes;
      return block;
    }
  }
  fail(ErrorCode::kInvalidFile, "{} is cut short, or is not an SSSD index", path_.string());
}

std::optional<std::vector<TokenId>> SssdIndex::next_chunk() {
  if (offset_ == file_.bytes().size()) return std::nullopt;
  const auto data = take_block();
  const auto suffix_array = take_block();
  const size_t token_bytes = wide_ ? sizeof(uint32_t) : sizeof(uint16_t);
  if (data.size() % token_bytes != 0 ||
      suffix_array.size() / sizeof(int32_t) != data.size() / token_bytes) {
    fail(ErrorCode::kInvalidFile, "{} is not an SSSD index: its parts do not fit each other",
         path_.string());
  }
  auto tokens = wide_ ? to_tokens<uint32_t>(data) : to_tokens<uint16_t>(data);
  const auto unknown = std::find_if(tokens.begin(), tokens.end(), [this](TokenId token) {
    return to_int(token) < 0 || to_int(token) >= n_vocab_;
  });
  if (unknown != tokens.end()) {
    fail(ErrorCode::kInvalidFile,
         "{} has token {} and the model's vocabulary has {}: name the model it was made with",
         path_.string(), to_int(*unknown), n_vocab_);
  }
  return tokens;
}

double SssdIndex::share_read() const {
  return static_cast<double>(offset_) / static_cast<double>(file_.bytes().size());
}

std::vector<TokenId> documents_between(std::span<const TokenId> tokens, std::optional<TokenId> separator,
                                       int64_t max_tokens) {
  std::vector<TokenId> text;
  text.reserve(tokens.size() + 1);
  int64_t length = 0;
  const auto end_document = [&] {
    if (length > 0) text.push_back(Segment::kSeparator);
    length = 0;
  };
  for (const TokenId token : tokens) {
    if (token == separator || length == max_tokens) end_document();
    if (token == separator) continue;
    text.push_back(token);
    ++length;
  }
  end_document();
  return text;
}

}  // namespace forerun
