#include "text/vocabulary_kinds.h"

#include <array>
#include <bitset>
#include <cctype>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "text/utf8.h"
#include "text/vocabulary_keys.h"

namespace forerun {

using namespace vocabulary_keys;

namespace {

constexpr int32_t kByteToken = 6;  // the file's number for such a type

// libllama looks for every beginning of a word, up to the length of the longest token.
constexpr size_t kMaxWordPieceBytes = 256;
// It keeps tokens as tries of one node per byte, in a function per level.
constexpr size_t kMaxTrieDepth = 1024;
constexpr size_t kMaxTrieBytes = size_t{16} << 20;
// It makes a row of a table for each part of a token of PLaMo-2 that is a token or the end of one. Of
// 100,000 usual tokens the squares of the lengths come to a tenth of that.
constexpr size_t kMaxPlamoSquares = size_t{1} << 25;
// A character becomes this much text at most. In Unicode's own map it is 33 bytes.
constexpr size_t kMaxReplacementBytes = 256;

class Tokens {
 public:
  Tokens(const gguf_context* gguf, size_t n_tokens)
      : gguf_(gguf),
        texts_(gguf_find_key(gguf, kTokens)),
        types_(static_cast<const int32_t*>(
            per_token(gguf, kTypes, find_array(gguf, kTypes, {GGUF_TYPE_INT32}), n_tokens))),
        n_tokens_(n_tokens) {}

  size_t size() const { return n_tokens_; }
  std::string_view text(size_t i) const { return gguf_get_arr_str(gguf_, texts_, i); }
  bool is_byte(size_t i) const { return types_ != nullptr && types_[i] == kByteToken; }

  void check_length(size_t most) const {
    size_t total = 0;
    for (size_t i = 0; i < n_tokens_; ++i) {
      total += text(i).size();
      if (text(i).size() > most) {
        fail(ErrorCode::kInvalidFile, "{}: token {} is longer than {} bytes", kTokens, i, most);
      }
    }
    if (total > kMaxTrieBytes) {
      fail(ErrorCode::kInvalidFile,
           "{}: tokens of this kind have {} bytes together; at most {} are supported", kTokens, total,
           kMaxTrieBytes);
    }
  }

 private:
  const gguf_context* gguf_;
  int64_t texts_;
  const int32_t* types_;
  size_t n_tokens_;
};

// libllama takes the default where the file names no token, or one that there is not.
void require_token(const gguf_context* gguf, const char* key, uint32_t otherwise, size_t n_tokens) {
  const auto id = find_typed(gguf, key, GGUF_TYPE_UINT32);
  const bool is_named = id && gguf_get_val_u32(gguf, *id) < n_tokens;
  if (!is_named && otherwise >= n_tokens) {
    fail(ErrorCode::kInvalidFile, "the tokenizer needs a token that the file does not name (key {})",
         key);
  }
}

void check_word_piece(const gguf_context* gguf, const Tokens& tokens, StableHash& hash) {
  tokens.check_length(kMaxWordPieceBytes);
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens.is_byte(i)) {
      fail(ErrorCode::kInvalidFile, "{}: token {} is of type byte, which tokenizer 'bert' does not have",
           kTokens, i);
    }
  }
  require_token(gguf, kUnknown, 100, tokens.size());
  require_token(gguf, kBos, 101, tokens.size());
  require_token(gguf, kSeparator, 102, tokens.size());
  const bool lowers = flag_value(gguf, kLowercase, true);
  hash.add(static_cast<uint64_t>(lowers));
  hash.add(static_cast<uint64_t>(flag_value(gguf, kStripsAccents, lowers)));
}

// Unigram's map of characters: the length of a double array, the array, and texts that end with a zero.
// A place in the array is reached from another by a byte. docs: vocabularies of SentencePiece,
// "precompiled_charsmap".
class CharacterMap {
 public:
  explicit CharacterMap(std::span<const unsigned char> bytes) {
    uint32_t n_bytes = 0;
    if (bytes.size() < sizeof(n_bytes)) refuse("is too short");
    std::memcpy(&n_bytes, bytes.data(), sizeof(n_bytes));
    bytes = bytes.subspan(sizeof(n_bytes));
    if (n_bytes >= bytes.size()) refuse("is shorter than it says");
    places_.resize(n_bytes / sizeof(uint32_t));
    std::memcpy(places_.data(), bytes.data(), places_.size() * sizeof(uint32_t));
    replacements_ = bytes.subspan(n_bytes);
  }

  // That no text leads out of it, and what it leads to is not too long.
  void check() const {
    check_replacements();
    if (places_.empty()) return;
    std::vector<bool> is_seen(places_.size());
    std::vector<uint32_t> open = {step(0)};
    while (!open.empty()) {
      const uint32_t state = open.back();
      open.pop_back();
      for (uint32_t byte = 1; byte < 256; ++byte) {
        const uint32_t place = state ^ byte;
        if (place >= places_.size()) refuse("leads out of its array");
        if ((places_[place] & (1U << 31 | 0xff)) != byte || is_seen[place]) continue;
        is_seen[place] = true;
        const uint32_t next = place ^ step(place);
        const bool is_end = (places_[place] >> 8 & 1) != 0;
        if (is_end) check_end(next);
        open.push_back(next);
      }
    }
  }

 private:
  [[noreturn]] static void refuse(const char* why) {
    fail(ErrorCode::kInvalidFile, "the tokenizer's map of characters {} (key {})", why, kCharacterMap);
  }

  // How the next place's number differs from this one's.
  uint32_t step(uint32_t place) const {
    const uint32_t packed = places_[place];
    return (packed >> 10) << ((packed & 1U << 9) >> 6);
  }

  void check_end(uint32_t place) const {
    if (place >= places_.size()) refuse("leads out of its array");
    if ((places_[place] & ~(1U << 31)) >= replacements_.size()) refuse("leads out of its texts");
  }

  void check_replacements() const {
    size_t length = 0;
    for (const unsigned char byte : replacements_) {
      length = byte == 0 ? 0 : length + 1;
      if (length > kMaxReplacementBytes) refuse("makes too much text of a character");
    }
    if (replacements_.back() != 0) refuse("ends within a text");
  }

  std::vector<uint32_t> places_;
  std::span<const unsigned char> replacements_;
};

void check_unigram(const gguf_context* gguf, const Tokens& tokens, StableHash& hash) {
  tokens.check_length(kMaxTrieDepth);
  require_token(gguf, kUnknown, 2, tokens.size());
  const auto map = find_array(gguf, kCharacterMap, {GGUF_TYPE_UINT8, GGUF_TYPE_INT8});
  if (map) {
    const std::span bytes(static_cast<const unsigned char*>(gguf_get_arr_data(gguf, *map)),
                          gguf_get_arr_n(gguf, *map));
    CharacterMap(bytes).check();
    hash.add(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  }
  hash.add(static_cast<uint64_t>(flag_value(gguf, kMergesSpaces, false)));
}

// The bytes that a token of RWKV stands for; nullopt where it is not written as such tokens are.
std::optional<std::string> unescaped(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      bytes += text[i];
      continue;
    }
    if (++i == text.size()) return std::nullopt;
    const auto digit = [&](size_t at) {
      constexpr std::string_view kDigits = "0123456789abcdef";
      return at < text.size() ? kDigits.find(text[at]) : std::string_view::npos;
    };
    switch (text[i]) {
      case 't': bytes += '\t'; break;
      case 'n': bytes += '\n'; break;
      case 'r': bytes += '\r'; break;
      case 'x':
        if (digit(i + 1) == std::string_view::npos || digit(i + 2) == std::string_view::npos)
          return std::nullopt;
        bytes += static_cast<char>(digit(i + 1) << 4 | digit(i + 2));
        i += 2;
        break;
      default: bytes += text[i];
    }
  }
  return bytes;
}

// Without a token for every byte libllama would take some texts for ever.
void check_rwkv(const Tokens& tokens) {
  tokens.check_length(kMaxTrieDepth);
  std::bitset<256> known;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const auto bytes = unescaped(tokens.text(i));
    if (!bytes) {
      fail(ErrorCode::kInvalidFile, "{}: token {} ({}) has a '\\' that means nothing", kTokens, i,
           in_message(tokens.text(i)));
    }
    if (bytes->size() == 1) known.set(static_cast<unsigned char>(bytes->front()));
  }
  for (size_t byte = 0; byte < known.size(); ++byte) {
    if (!known[byte])
      fail(ErrorCode::kInvalidFile, "{}: there is no token for the byte {}", kTokens, byte);
  }
}

void check_plamo2(const Tokens& tokens) {
  tokens.check_length(kMaxTrieDepth);
  size_t squares = 0;
  std::bitset<256> known;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const std::string_view text = tokens.text(i);
    if (tokens.is_byte(i)) {
      // libllama takes 0 for none.
      if (i > 0) known.set(std::stoul(std::string(text.substr(3, 2)), nullptr, 16));
      continue;
    }
    if (!is_valid_utf8(text)) {
      fail(ErrorCode::kInvalidFile, "{}: token {} ({}) is not valid UTF-8", kTokens, i,
           in_message(text));
    }
    squares += text.size() * text.size();
  }
  for (size_t byte = 0; byte < known.size(); ++byte) {
    if (!known[byte])
      fail(ErrorCode::kInvalidFile, "{}: there is no token for the byte {}", kTokens, byte);
  }
  if (squares > kMaxPlamoSquares) {
    fail(ErrorCode::kInvalidFile, "{}: the tokens are too long for tokenizer 'plamo2'", kTokens);
  }
}

}  // namespace

void check_kind_of_vocabulary(const gguf_context* gguf, TokenizerKind kind, size_t n_tokens,
                              StableHash& hash) {
  const Tokens tokens(gguf, n_tokens);
  switch (kind) {
    case TokenizerKind::kSentencePiece:
    case TokenizerKind::kBytePair: break;
    case TokenizerKind::kWordPiece: check_word_piece(gguf, tokens, hash); break;
    case TokenizerKind::kUnigram: check_unigram(gguf, tokens, hash); break;
    case TokenizerKind::kRwkv: check_rwkv(tokens); break;
    case TokenizerKind::kPlamo2: check_plamo2(tokens); break;
  }
}

}  // namespace forerun
