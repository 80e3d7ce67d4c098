#include "text/vocabulary_match.h"

#include <fmt/format.h>

#include <algorithm>

namespace forerun {
namespace {

// As llama.cpp allows.
constexpr size_t kMaxSizeDifference = 128;

std::string shown(const std::string& piece) {
  std::string text;
  for (const char c : piece) {
    const auto byte = static_cast<unsigned char>(c);
    text += byte < 0x20 || byte >= 0x7f ? fmt::format("\\x{:02x}", byte) : std::string(1, c);
  }
  return text;
}

}  // namespace

std::optional<std::string> vocabulary_difference(const Vocabulary& target, const Vocabulary& draft) {
  if (target.fingerprint() == draft.fingerprint()) return std::nullopt;
  if (target.kind_name() != draft.kind_name()) {
    return fmt::format("its vocabulary is {}, the model's {}", draft.kind_name(), target.kind_name());
  }
  const size_t fewer = std::min(target.n_tokens(), draft.n_tokens());
  const size_t more = std::max(target.n_tokens(), draft.n_tokens());
  if (more - fewer > kMaxSizeDifference) {
    return fmt::format("it has {} tokens, the model {}", draft.n_tokens(), target.n_tokens());
  }
  for (size_t i = 0; i < fewer; ++i) {
    const TokenId token{static_cast<int32_t>(i)};
    const std::string ours = target.piece(token, ControlTokens::kRendered);
    const std::string theirs = draft.piece(token, ControlTokens::kRendered);
    if (ours != theirs) {
      return fmt::format("its token {} is '{}', the model's '{}'", i, shown(theirs), shown(ours));
    }
  }
  return std::nullopt;
}

}  // namespace forerun
