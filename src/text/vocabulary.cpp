#include "text/vocabulary.h"

#include <ggml-backend.h>
#include <llama.h>

#include <array>
#include <new>
#include <stdexcept>
#include <utility>

#include "core/error.h"
#include "gguf/ggml_log.h"
#include "text/large_stack.h"
#include "text/utf8.h"

namespace forerun {
namespace {

std::optional<TokenId> optional_token(llama_token token) {
  if (token == LLAMA_TOKEN_NULL) return std::nullopt;
  return TokenId{token};
}

// libllama does not ask the file for all kinds.
bool begins_texts(TokenizerKind kind, const llama_vocab* vocab) {
  if (kind == TokenizerKind::kWordPiece) return true;
  if (kind == TokenizerKind::kRwkv || kind == TokenizerKind::kPlamo2) return false;
  return llama_vocab_get_add_bos(vocab);
}

bool ends_texts(TokenizerKind kind, const llama_vocab* vocab) {
  if (kind == TokenizerKind::kWordPiece || kind == TokenizerKind::kRwkv ||
      kind == TokenizerKind::kPlamo2)
    return false;
  return llama_vocab_get_add_eos(vocab);
}

}  // namespace

Vocabulary Vocabulary::load(const GgufMetadata& metadata) {
  const VocabularyFacts facts = check_vocabulary(metadata);

  GgmlLogCapture log;
  std::array<ggml_backend_dev_t, 1> no_devices = {nullptr};
  llama_model_params params = llama_model_default_params();
  params.vocab_only = true;
  params.devices = no_devices.data();  // do not wake up GPUs for a vocabulary
  // libllama takes the context as non-const but only reads it, and copies what it
  // keeps.
  auto* gguf = const_cast<gguf_context*>(metadata.raw());
  llama_model* model = llama_model_init_from_user(gguf, nullptr, nullptr, params);
  if (model == nullptr) {
    fail(ErrorCode::kInvalidFile, "the vocabulary cannot be loaded: {}", log.first_error());
  }
  return Vocabulary({model, llama_model_free}, facts);
}

Vocabulary::Vocabulary(std::shared_ptr<llama_model> model, const VocabularyFacts& facts)
    : model_(std::move(model)), vocab_(llama_model_get_vocab(model_.get())), facts_(facts) {
  const bool trust_defaults = facts_.kind != TokenizerKind::kBytePair;
  if (facts_.names_bos || trust_defaults) bos_ = optional_token(llama_vocab_bos(vocab_));
  if (facts_.names_eos || trust_defaults) eos_ = optional_token(llama_vocab_eos(vocab_));
  adds_bos_ = begins_texts(facts_.kind, vocab_);
  infill_tokens_ = {.prefix = optional_token(llama_vocab_fim_pre(vocab_)),
                    .suffix = optional_token(llama_vocab_fim_suf(vocab_)),
                    .middle = optional_token(llama_vocab_fim_mid(vocab_)),
                    .project = optional_token(llama_vocab_fim_rep(vocab_)),
                    .file = optional_token(llama_vocab_fim_sep(vocab_))};
  // libllama aborts when it shall add a token that there is not.
  if (adds_bos_ && !bos_) {
    fail(ErrorCode::kInvalidFile,
         "the tokenizer begins texts with a token that the file does not name "
         "(key tokenizer.ggml.bos_token_id)");
  }
  if (ends_texts(facts_.kind, vocab_) && !eos_) {
    fail(ErrorCode::kInvalidFile,
         "the tokenizer ends texts with a token that the file does not name "
         "(key tokenizer.ggml.eos_token_id)");
  }
}

bool Vocabulary::contains(TokenId token) const {
  return to_int(token) >= 0 && static_cast<size_t>(to_int(token)) < facts_.n_tokens;
}

void Vocabulary::check_token(TokenId token) const {
  if (contains(token)) return;
  fail(ErrorCode::kInvalidArgument, "there is no token {}; the vocabulary has tokens 0 to {}",
       to_int(token), facts_.n_tokens - 1);
}

std::vector<TokenId> Vocabulary::tokenize(std::string_view text, TokenizeOptions options) const {
  if (text.size() > kMaxTextBytes) {
    fail(ErrorCode::kInvalidArgument, "the text has {} bytes; at most {} can be tokenized at once",
         text.size(), kMaxTextBytes);
  }
  if (const auto invalid = first_invalid_byte(text)) {
    fail(ErrorCode::kInvalidArgument, "the text is not valid UTF-8 (at byte {})", *invalid);
  }
  if (facts_.kind != TokenizerKind::kBytePair) return tokenize_checked(text, options);
  // libllama splits texts into words with std::regex for some byte-pair vocabularies.
  std::vector<TokenId> tokens;
  run_on_stack_for_regex(text.size(), [&] { tokens = tokenize_checked(text, options); });
  return tokens;
}

std::vector<TokenId> Vocabulary::tokenize_checked(std::string_view text, TokenizeOptions options) const {
  static_assert(sizeof(TokenId) == sizeof(llama_token));
  const GgmlLogCapture log;
  // Room for one token per byte and the special ones; more are rarely needed, and
  // then libllama says how many.
  std::vector<TokenId> tokens(text.size() + 4);
  const auto tokenize_into = [&] {
    return llama_tokenize(vocab_, text.data(), static_cast<int32_t>(text.size()),
                          reinterpret_cast<llama_token*>(tokens.data()),
                          static_cast<int32_t>(tokens.size()), options.add_special,
                          options.parse_special);
  };
  try {
    int32_t n = tokenize_into();
    if (n < 0) {
      tokens.resize(static_cast<size_t>(-n));
      n = tokenize_into();
    }
    tokens.resize(static_cast<size_t>(n));
  } catch (const std::out_of_range&) {  // a lookup of a byte token
    fail(ErrorCode::kInvalidArgument,
         "the model's vocabulary has no token for some character of the text");
  } catch (const std::bad_alloc&) {
    fail(ErrorCode::kOutOfMemory, "not enough memory to tokenize {} bytes of text", text.size());
  } catch (const std::exception& error) {
    fail(ErrorCode::kInvalidArgument, "the text cannot be tokenized: {}", error.what());
  }
  return tokens;
}

std::vector<TokenId> Vocabulary::tokenize_rendered(std::string_view text) const {
  std::vector<TokenId> tokens = tokenize(text, {.add_special = false, .parse_special = true});
  if (adds_bos_ && (tokens.empty() || tokens.front() != *bos_)) tokens.insert(tokens.begin(), *bos_);
  return tokens;
}

const SortedPieces& Vocabulary::sorted_pieces() const {
  std::call_once(sorted_pieces_->once, [this] {
    std::vector<std::pair<std::string, TokenId>> pieces;
    pieces.reserve(n_tokens());
    for (size_t id = 0; id < n_tokens(); ++id) {
      const TokenId token{static_cast<int32_t>(id)};
      if (is_end_of_generation(token)) continue;
      std::string text = piece(token, ControlTokens::kRendered);
      if (!text.empty()) pieces.emplace_back(std::move(text), token);
    }
    sorted_pieces_->pieces.emplace(std::move(pieces));
  });
  return *sorted_pieces_->pieces;
}

std::string Vocabulary::piece(TokenId token, ControlTokens control) const {
  check_token(token);
  const bool rendered = control == ControlTokens::kRendered;
  std::string bytes(32, '\0');
  const auto render_into = [&] {
    return llama_token_to_piece(vocab_, to_int(token), bytes.data(), static_cast<int32_t>(bytes.size()),
                                /*lstrip=*/0, rendered);
  };
  int32_t n = render_into();
  if (n < 0) {
    bytes.resize(static_cast<size_t>(-n));
    n = render_into();
  }
  bytes.resize(static_cast<size_t>(n));
  return bytes;
}

std::string Vocabulary::detokenize(std::span<const TokenId> tokens, ControlTokens control) const {
  std::string text;
  bool at_start = facts_.adds_space_prefix;
  for (const TokenId token : tokens) {
    const std::string bytes = piece(token, control);
    const bool drop_space = at_start && !is_control(token) && bytes.starts_with(' ');
    text.append(bytes, drop_space ? 1 : 0);
    if (!is_control(token)) at_start = false;
  }
  return text;
}

bool Vocabulary::is_control(TokenId token) const {
  check_token(token);
  return llama_vocab_is_control(vocab_, to_int(token));
}

bool Vocabulary::is_end_of_generation(TokenId token) const {
  check_token(token);
  if (!llama_vocab_is_eog(vocab_, to_int(token))) return false;
  // Not the ordinary token that libllama takes for the end where none is named.
  return eos_ || is_control(token) || to_int(token) != llama_vocab_eos(vocab_);
}

std::string_view Vocabulary::kind_name() const {
  switch (facts_.kind) {
    case TokenizerKind::kSentencePiece: return "SentencePiece";
    case TokenizerKind::kBytePair: return "byte-pair";
    case TokenizerKind::kWordPiece: return "WordPiece";
    case TokenizerKind::kUnigram: return "Unigram";
    case TokenizerKind::kRwkv: return "RWKV";
    case TokenizerKind::kPlamo2: return "PLaMo-2";
  }
  return "";
}

}  // namespace forerun
