#include <forerun/tokenizer.h>

#include "api/tokenizer_impl.h"
#include "core/error.h"

namespace forerun {

int Tokenizer::n_tokens() const {
  return static_cast<int>(impl_->vocabulary.n_tokens());
}

std::vector<TokenId> Tokenizer::tokenize(std::string_view text, TokenizeOptions options) const {
  return impl_->vocabulary.tokenize(text, options);
}

std::vector<TokenId> Tokenizer::tokenize_rendered(std::string_view text) const {
  return impl_->vocabulary.tokenize_rendered(text);
}

std::string Tokenizer::piece(TokenId token) const {
  return impl_->vocabulary.piece(token, ControlTokens::kRendered);
}

std::string Tokenizer::detokenize(std::span<const TokenId> tokens) const {
  return impl_->vocabulary.detokenize(tokens);
}

bool Tokenizer::has_chat_template() const {
  return impl_->chat_template.has_value();
}

std::vector<TokenId> Tokenizer::chat_prompt(const std::vector<ChatMessage>& messages) const {
  if (!has_chat_template()) {
    fail(ErrorCode::kUnsupported, "this model has no chat template; give it a text to continue");
  }
  return impl_->vocabulary.tokenize_rendered(
      impl_->chat_template->render(messages, /*add_generation_prompt=*/true));
}

std::optional<TokenId> Tokenizer::bos() const {
  return impl_->vocabulary.bos();
}

std::optional<TokenId> Tokenizer::eos() const {
  return impl_->vocabulary.eos();
}

bool Tokenizer::ends_text(TokenId token) const {
  return impl_->vocabulary.is_end_of_generation(token);
}

bool Tokenizer::adds_bos() const {
  return impl_->vocabulary.adds_bos();
}

InfillTokens Tokenizer::infill_tokens() const {
  return impl_->vocabulary.infill_tokens();
}

}  // namespace forerun
