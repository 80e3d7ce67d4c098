#include "text/vocabulary_check.h"

#include <gguf.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cctype>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/hash.h"
#include "text/vocabulary_keys.h"
#include "text/vocabulary_kinds.h"

namespace forerun {

using namespace vocabulary_keys;

namespace {

// Only the type matters: libllama ignores these when they are out of range, as
// the padding token of many fine-tuned models is.
constexpr std::array kIntegers = {
    "general.file_type",
    "tokenizer.ggml.token_type_count",
    "tokenizer.ggml.eot_token_id",
    "tokenizer.ggml.eom_token_id",
    "tokenizer.ggml.unknown_token_id",
    "tokenizer.ggml.seperator_token_id",
    "tokenizer.ggml.padding_token_id",
    "tokenizer.ggml.mask_token_id",
    "tokenizer.ggml.fim_pre_token_id",
    "tokenizer.ggml.fim_suf_token_id",
    "tokenizer.ggml.fim_mid_token_id",
    "tokenizer.ggml.fim_pad_token_id",
    "tokenizer.ggml.fim_rep_token_id",
    "tokenizer.ggml.fim_sep_token_id",
    "tokenizer.ggml.prefix_token_id",
    "tokenizer.ggml.suffix_token_id",
    "tokenizer.ggml.middle_token_id",
};

constexpr std::array kFlags = {
    "tokenizer.ggml.add_bos_token",        "tokenizer.ggml.add_eos_token",
    "tokenizer.ggml.add_sep_token",        "tokenizer.ggml.remove_extra_whitespaces",
    "tokenizer.ggml.normalizer.lowercase", "tokenizer.ggml.normalizer.strip_accents",
};

// libllama expands a byte-pair token made of unknown characters to the square of
// its length. The longest tokens of real models have a few hundred bytes.
constexpr size_t kMaxTokenBytes = 4096;

constexpr float kMaxScore = 1e5F;  // of kinds that add them up

constexpr int32_t kByteType = 6;  // the file's number for a token that is one byte

TokenizerKind check_kind(const gguf_context* gguf, StableHash& hash) {
  const std::string_view model = string_value(gguf, kModel);
  const std::string_view pre = string_value(gguf, kPre);
  if (model.empty()) fail(ErrorCode::kInvalidFile, "the file has no tokenizer (key {})", kModel);
  hash.add(model);
  hash.add(pre);
  if (model == "llama") return TokenizerKind::kSentencePiece;
  if (model == "bert") return TokenizerKind::kWordPiece;
  if (model == "t5") return TokenizerKind::kUnigram;
  if (model == "rwkv") return TokenizerKind::kRwkv;
  if (model == "plamo2") return TokenizerKind::kPlamo2;
  if (model != "gpt2" && model != "gemma4") {
    fail(ErrorCode::kUnsupported,
         "tokenizer {} is not supported (supported: llama, gpt2, gemma4, bert, t5, rwkv, plamo2)",
         in_message(model));
  }
  // libllama accepts this one but aborts on the first two spaces of a text.
  if (pre == "whitespace") {
    fail(ErrorCode::kUnsupported, "{} 'whitespace' is not supported with tokenizer {}", kPre,
         in_message(model));
  }
  return TokenizerKind::kBytePair;
}

// The tokens by text: an open-addressing table of their indices, each with a part
// of its hash, so that another token is looked at only if it may be equal.
class TokenTable {
 public:
  TokenTable(const gguf_context* gguf, int64_t array)
      : gguf_(gguf), array_(array), hashes_(gguf_get_arr_n(gguf, array)) {
    for (size_t i = 0; i < hashes_.size(); ++i) hashes_[i] = StableHash::of(token(i));
  }

  size_t size() const { return hashes_.size(); }
  std::string_view token(size_t index) const { return gguf_get_arr_str(gguf_, array_, index); }
  uint64_t hash(size_t index) const { return hashes_[index]; }
  bool is_empty(size_t index) const { return hashes_[index] == empty_ && token(index).empty(); }

  // Enters all tokens but empty ones; the index of one that equals an earlier one,
  // if any does.
  std::optional<size_t> fill() {
    slots_.assign(std::bit_ceil(2 * size() + 1), kEmpty);
    for (size_t i = 0; i < size(); ++i) {
      // Nearly every slot is a cache miss; without this they are most of the time.
      if (i + 16 < size()) __builtin_prefetch(&slots_[hashes_[i + 16] & (slots_.size() - 1)]);
      if (is_empty(i)) continue;
      uint64_t& slot = slots_[find(hashes_[i], [&](size_t other) { return token(other) == token(i); })];
      if (slot != kEmpty) return i;
      slot = (hashes_[i] & kTagMask) | i;
    }
    return std::nullopt;
  }

  bool contains(std::string_view wanted) const {
    const auto equal = [&](size_t other) { return token(other) == wanted; };
    return slots_[find(StableHash::of(wanted), equal)] != kEmpty;
  }

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;
  static constexpr uint64_t kTagMask = 0xFFFFFFFF00000000u;

  // The slot of the token of that hash that is `equal`, or the empty one where it
  // would go.
  template <typename Equal>
  size_t find(uint64_t hash, const Equal& equal) const {
    const size_t mask = slots_.size() - 1;
    size_t place = static_cast<size_t>(hash) & mask;
    for (; slots_[place] != kEmpty; place = (place + 1) & mask) {
      const uint64_t slot = slots_[place];
      if (((slot ^ hash) & kTagMask) == 0 && equal(slot & ~kTagMask)) break;
    }
    return place;
  }

  const gguf_context* gguf_;
  int64_t array_;
  uint64_t empty_ = StableHash::of("");
  std::vector<uint64_t> hashes_;
  std::vector<uint64_t> slots_;
};

bool is_byte_token(std::string_view token) {
  return token.size() == 6 && token.starts_with("<0x") && token.back() == '>' &&
         std::isxdigit(static_cast<unsigned char>(token[3])) != 0 &&
         std::isxdigit(static_cast<unsigned char>(token[4])) != 0;
}

// libllama looks these tokens up in models of that name and fails without saying
// why if they are missing.
void check_tokens_of_phi3(const gguf_context* gguf, const TokenTable& tokens) {
  std::string name(string_value(gguf, "general.name"));
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (name.find("phi-3") == std::string::npos && name.find("phi3") == std::string::npos) return;
  for (const std::string_view wanted : {"</s>", "<unk>", "<s>", "<|endoftext|>"}) {
    if (!tokens.contains(wanted)) {
      fail(ErrorCode::kInvalidFile, "{}: a model named {} needs the token '{}'", kTokens,
           in_message(name), wanted);
    }
  }
}

size_t check_tokens(const gguf_context* gguf, StableHash& hash) {
  const auto tokens_id = find_array(gguf, kTokens, {GGUF_TYPE_STRING});
  const size_t n_tokens = tokens_id ? gguf_get_arr_n(gguf, *tokens_id) : 0;
  if (n_tokens == 0) fail(ErrorCode::kInvalidFile, "the file has no tokens (key {})", kTokens);
  const auto types_id = find_array(gguf, kTypes, {GGUF_TYPE_INT32});
  const auto* types = static_cast<const int32_t*>(per_token(gguf, kTypes, types_id, n_tokens));

  TokenTable tokens(gguf, *tokens_id);
  for (size_t i = 0; i < n_tokens; ++i) {
    const std::string_view token = tokens.token(i);
    const int32_t type = types != nullptr ? types[i] : 1;
    if (token.size() > kMaxTokenBytes) {
      fail(ErrorCode::kInvalidFile, "{}: token {} is longer than {} bytes", kTokens, i, kMaxTokenBytes);
    }
    if (type == kByteType && !is_byte_token(token)) {
      fail(ErrorCode::kInvalidFile, "{}: token {} is of type byte and should be '<0x..>' but is {}",
           kTokens, i, in_message(token));
    }
    hash.add(tokens.hash(i) ^ static_cast<uint32_t>(type));
  }
  if (const auto repeated = tokens.fill()) {
    fail(ErrorCode::kInvalidFile, "{}: token {} ({}) appears twice", kTokens, *repeated,
         in_message(tokens.token(*repeated)));
  }
  for (size_t i = 0; i < n_tokens; ++i) {
    // libllama gives an empty token a name, which must not be taken.
    if (tokens.is_empty(i) && tokens.contains(fmt::format("[EMPTY_{}]", i))) {
      fail(ErrorCode::kInvalidFile, "{}: token {} is empty and its stand-in [EMPTY_{}] is taken",
           kTokens, i, i);
    }
  }
  check_tokens_of_phi3(gguf, tokens);
  return n_tokens;
}

bool uses_scores(TokenizerKind kind) {
  return kind == TokenizerKind::kSentencePiece || kind == TokenizerKind::kUnigram ||
         kind == TokenizerKind::kPlamo2;
}

void check_scores(const gguf_context* gguf, TokenizerKind kind, size_t n_tokens, StableHash& hash) {
  const auto id = find_array(gguf, kScores, {GGUF_TYPE_FLOAT32, GGUF_TYPE_INT32});
  const void* data = per_token(gguf, kScores, id, n_tokens);
  if (data == nullptr || !uses_scores(kind)) return;
  // SentencePiece only compares them; others add them up, PLaMo-2 as whole ten-thousandths.
  const bool adds_up = kind != TokenizerKind::kSentencePiece;
  const bool is_float = gguf_get_arr_type(gguf, *id) == GGUF_TYPE_FLOAT32;
  for (size_t i = 0; i < n_tokens && (is_float || adds_up); ++i) {
    const float score = is_float ? static_cast<const float*>(data)[i]
                                 : static_cast<float>(static_cast<const int32_t*>(data)[i]);
    if (std::isnan(score)) {
      fail(ErrorCode::kInvalidFile, "{}: the score of token {} is not a number", kScores, i);
    }
    if (adds_up && std::abs(score) > kMaxScore) {
      fail(ErrorCode::kInvalidFile, "{}: the score of token {} is {}, but at most {} is possible",
           kScores, i, score, kMaxScore);
    }
  }
  hash.add(std::string_view(static_cast<const char*>(data), n_tokens * sizeof(float)));
}

void check_merges(const gguf_context* gguf, StableHash& hash) {
  const auto id = find_array(gguf, kMerges, {GGUF_TYPE_STRING});
  if (!id) {
    if (string_value(gguf, kPre) == "kimi-k2") return;  // the one tokenizer without
    fail(ErrorCode::kInvalidFile, "the tokenizer has no merges (key {})", kMerges);
  }
  for (size_t i = 0; i < gguf_get_arr_n(gguf, *id); ++i) {
    const std::string_view merge = gguf_get_arr_str(gguf, *id, i);
    if (merge.find(' ', 1) == std::string_view::npos) {
      fail(ErrorCode::kInvalidFile, "{}: entry {} ({}) is not two tokens separated by a space", kMerges,
           i, in_message(merge));
    }
    hash.add(merge);
  }
}

bool adds_space_prefix(const gguf_context* gguf, TokenizerKind kind) {
  const bool is_default = kind == TokenizerKind::kSentencePiece;
  const bool is_wanted = flag_value(gguf, kSpacePrefix, is_default);
  if (kind == TokenizerKind::kSentencePiece) return is_wanted;
  if (kind == TokenizerKind::kUnigram) return is_wanted || flag_value(gguf, kMergesSpaces, false);
  return kind == TokenizerKind::kWordPiece;  // in front of every word
}

// True if the file names the token; it must exist then.
bool check_named_token(const gguf_context* gguf, const char* key, size_t n_tokens) {
  const auto id = find_typed(gguf, key, GGUF_TYPE_UINT32);
  if (!id) return false;
  if (gguf_get_val_u32(gguf, *id) >= n_tokens) {
    fail(ErrorCode::kInvalidFile, "{} is {}, but there are only {} tokens", key,
         gguf_get_val_u32(gguf, *id), n_tokens);
  }
  return true;
}

}  // namespace

VocabularyFacts check_vocabulary(const GgufMetadata& metadata) {
  const gguf_context* gguf = metadata.raw();
  if (string_value(gguf, "general.architecture").empty()) {
    fail(ErrorCode::kInvalidFile, "the file does not name its architecture (key general.architecture)");
  }
  string_value(gguf, "general.name");
  for (const char* key : kIntegers) find_typed(gguf, key, GGUF_TYPE_UINT32);
  for (const char* key : kFlags) find_typed(gguf, key, GGUF_TYPE_BOOL);
  find_array(gguf, "tokenizer.ggml.suppress_tokens", {GGUF_TYPE_INT32});

  StableHash hash;
  VocabularyFacts facts{};
  facts.kind = check_kind(gguf, hash);
  facts.n_tokens = check_tokens(gguf, hash);
  check_scores(gguf, facts.kind, facts.n_tokens, hash);
  if (facts.kind == TokenizerKind::kBytePair) check_merges(gguf, hash);
  check_kind_of_vocabulary(gguf, facts.kind, facts.n_tokens, hash);
  facts.names_bos = check_named_token(gguf, kBos, facts.n_tokens);
  facts.names_eos = check_named_token(gguf, kEos, facts.n_tokens);

  facts.adds_space_prefix = adds_space_prefix(gguf, facts.kind);
  hash.add(static_cast<uint64_t>(facts.adds_space_prefix));
  facts.fingerprint = hash.value();
  return facts;
}

}  // namespace forerun
