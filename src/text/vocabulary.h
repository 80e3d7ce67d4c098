// A model's vocabulary: text to tokens and back, through libllama.
//
// Loading takes the GGUF metadata that is in memory already; the file is not
// parsed again and no weights are touched. A damaged vocabulary is an Error, never
// an abort (vocabulary_check.h).
//
//   const Vocabulary vocabulary = Vocabulary::load(file.metadata());
//   std::vector<TokenId> prompt = vocabulary.tokenize("Once upon a time");
//
// For generated text use a TokenStreamer (token_streamer.h).
#pragma once

#include <forerun/tokenizer.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "gguf/metadata.h"
#include "text/sorted_pieces.h"
#include "text/vocabulary_check.h"

struct llama_model;
struct llama_vocab;

namespace forerun {

// Control tokens structure a text for the model and are not part of it.
enum class ControlTokens {
  kHidden,    // they have no text
  kRendered,  // their names: "<|im_end|>"
};

// Cheap to copy; const and thread-safe. Does not refer to the metadata it was loaded from.
class Vocabulary {
 public:
  // Texts longer than this are refused.
  static constexpr size_t kMaxTextBytes = size_t{16} << 20;

  // Throws Error.
  static Vocabulary load(const GgufMetadata& metadata);

  size_t n_tokens() const { return facts_.n_tokens; }
  bool contains(TokenId token) const;

  // The tokens of `text`, which must be valid UTF-8 (NUL bytes are allowed) of at
  // most kMaxTextBytes; throws Error{kInvalidArgument} otherwise, or if the
  // vocabulary has no token for one of its characters.
  std::vector<TokenId> tokenize(std::string_view text, TokenizeOptions options = {}) const;

  // The tokens of what a ChatTemplate rendered: control tokens are read as such,
  // and the beginning-of-text token is added if the model wants one and the
  // template did not write it.
  std::vector<TokenId> tokenize_rendered(std::string_view text) const;

  // The bytes of one token; several tokens may share one character. All functions
  // that take a token throw Error{kInvalidArgument} if it is not in the vocabulary.
  std::string piece(TokenId token, ControlTokens control = ControlTokens::kHidden) const;

  // The bytes of a text from its beginning on: the pieces of its tokens, without
  // the space that some tokenizers put in front of every text. The inverse of
  // tokenize(), except that such tokenizers also put one after user-defined and
  // control tokens inside a text, where it stays, and that WordPiece and Unigram
  // change spaces and characters before they look for tokens.
  std::string detokenize(std::span<const TokenId> tokens,
                         ControlTokens control = ControlTokens::kHidden) const;

  std::optional<TokenId> bos() const { return bos_; }  // begins a text
  std::optional<TokenId> eos() const { return eos_; }  // ends a text
  bool adds_bos() const { return adds_bos_; }          // tokenize() begins with bos()
  const InfillTokens& infill_tokens() const { return infill_tokens_; }
  bool is_control(TokenId token) const;
  // The model has said all it wants to: the end of the text, of its turn, ...
  bool is_end_of_generation(TokenId token) const;

  // Of all tokens that stand for text, control tokens by their names; not those that end a generation.
  // Made when first asked for.
  const SortedPieces& sorted_pieces() const;

  // The first token of a text carries a space that is not in the text.
  bool adds_space_prefix() const { return facts_.adds_space_prefix; }

  // For what libllama does with it.
  const llama_vocab* raw() const { return vocab_; }

  // "SentencePiece", "byte-pair", ...
  std::string_view kind_name() const;
  // Equal for two models if they share every token: see VocabularyFacts.
  uint64_t fingerprint() const { return facts_.fingerprint; }

 private:
  Vocabulary(std::shared_ptr<llama_model> model, const VocabularyFacts& facts);

  void check_token(TokenId token) const;
  std::vector<TokenId> tokenize_checked(std::string_view text, TokenizeOptions options) const;

  std::shared_ptr<llama_model> model_;
  const llama_vocab* vocab_;  // owned by model_
  struct LazyPieces {
    std::once_flag once;
    std::optional<SortedPieces> pieces;
  };
  std::shared_ptr<LazyPieces> sorted_pieces_ = std::make_shared<LazyPieces>();
  VocabularyFacts facts_;
  std::optional<TokenId> bos_;
  std::optional<TokenId> eos_;
  bool adds_bos_ = false;
  InfillTokens infill_tokens_;
};

}  // namespace forerun
