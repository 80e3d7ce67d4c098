#include "text/token_streamer.h"

#include <gtest/gtest.h>

#include <random>

#include "text/test_vocabularies.h"

namespace forerun {
namespace {

std::string sanitized(const std::string& bytes) {
  Utf8Stream stream;
  std::string text = stream.push(bytes);
  return text + stream.flush();
}

// Random tokens, many of them bytes that form no character.
TEST(TokenStreamer, TextsTogetherAreTheWholeText) {
  std::mt19937 rng(4);
  for (const auto& gguf : {make_sentence_piece(), make_byte_pair()}) {
    const Vocabulary vocabulary = load(gguf);
    for (const ControlTokens control : {ControlTokens::kHidden, ControlTokens::kRendered}) {
      for (int i = 0; i < 1000; ++i) {
        std::vector<TokenId> tokens(rng() % 12);
        for (TokenId& token : tokens)
          token = TokenId{static_cast<int32_t>(rng() % vocabulary.n_tokens())};
        TokenStreamer streamer(vocabulary, {.control = control});
        std::string text;
        for (const TokenId token : tokens) {
          const std::string part = streamer.push(token);
          ASSERT_TRUE(is_valid_utf8(part));
          text += part;
        }
        text += streamer.flush();
        ASSERT_EQ(text, sanitized(vocabulary.detokenize(tokens, control)));
      }
    }
  }
}

TEST(TokenStreamer, NeverSplitsACharacter) {
  for (const auto& gguf : {make_sentence_piece(), make_byte_pair()}) {
    const Vocabulary vocabulary = load(gguf);
    TokenStreamer streamer(vocabulary);
    std::vector<std::string> texts;
    for (const TokenId token : vocabulary.tokenize("🙂", {.add_special = false})) {
      texts.push_back(streamer.push(token));
    }
    ASSERT_GE(texts.size(), 4u);
    EXPECT_EQ(texts.back(), "🙂");
    texts.pop_back();
    for (const std::string& text : texts) EXPECT_EQ(text, "");
  }
}

TEST(TokenStreamer, KeepsTheSpaceOfAContinuation) {
  const Vocabulary vocabulary = load(make_sentence_piece());
  const std::vector<TokenId> tokens = vocabulary.tokenize("world", {.add_special = false});
  ASSERT_EQ(tokens.size(), 1u);
  TokenStreamer start(vocabulary);
  EXPECT_EQ(start.push(*vocabulary.bos()), "");  // does not count as the first
  EXPECT_EQ(start.push(tokens[0]), "world");
  EXPECT_EQ(start.push(tokens[0]), " world");
  TokenStreamer continuation(vocabulary, {.at_text_start = false});
  EXPECT_EQ(continuation.push(tokens[0]), " world");
}

}  // namespace
}  // namespace forerun
