#include "text/vocabulary_match.h"

#include <gtest/gtest.h>

#include "text/test_vocabularies.h"

namespace forerun {
namespace {

Vocabulary with_tokens(const std::vector<TestToken>& tokens) {
  gguf_context_ptr gguf = make_sentence_piece();
  set_tokens(gguf.get(), tokens);
  return load(gguf);
}

TEST(VocabularyMatch, TheSameTokensMatch) {
  EXPECT_EQ(vocabulary_difference(load(make_sentence_piece()), load(make_sentence_piece())),
            std::nullopt);
}

TEST(VocabularyMatch, AFewMoreTokensMatch) {
  std::vector<TestToken> padded = sentence_piece_tokens();
  for (int i = 0; i < 5; ++i)
    padded.push_back({.text = "<pad" + std::to_string(i) + ">", .type = kUnused});
  const Vocabulary longer = with_tokens(padded);
  const Vocabulary usual = load(make_sentence_piece());
  EXPECT_EQ(vocabulary_difference(usual, longer), std::nullopt);
  EXPECT_EQ(vocabulary_difference(longer, usual), std::nullopt);
}

TEST(VocabularyMatch, SaysHowTheyDiffer) {
  const Vocabulary usual = load(make_sentence_piece());
  std::vector<TestToken> other = sentence_piece_tokens();
  other.back().text += "x";
  const auto token = vocabulary_difference(usual, with_tokens(other));
  ASSERT_TRUE(token.has_value());
  EXPECT_NE(token->find(std::to_string(other.size() - 1)), std::string::npos) << *token;

  std::vector<TestToken> many = sentence_piece_tokens();
  for (int i = 0; i < 200; ++i)
    many.push_back({.text = "<pad" + std::to_string(i) + ">", .type = kUnused});
  const auto size = vocabulary_difference(usual, with_tokens(many));
  ASSERT_TRUE(size.has_value());
  EXPECT_NE(size->find(std::to_string(many.size())), std::string::npos) << *size;

  const auto kind = vocabulary_difference(usual, load(make_byte_pair()));
  ASSERT_TRUE(kind.has_value());
  EXPECT_NE(kind->find("byte-pair"), std::string::npos) << *kind;
}

}  // namespace
}  // namespace forerun
