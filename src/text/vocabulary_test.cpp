#include "text/vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <thread>

#include "core/error.h"
#include "text/test_vocabularies.h"

namespace forerun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// The ids' texts, which say more in a failure than numbers.
std::vector<std::string> pieces(const Vocabulary& vocabulary, const std::vector<TokenId>& tokens) {
  std::vector<std::string> texts;
  for (const TokenId token : tokens) texts.push_back(vocabulary.piece(token, ControlTokens::kRendered));
  return texts;
}

template <typename Function>
std::string error_of(ErrorCode code, const Function& function) {
  try {
    function();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

std::string random_text(std::mt19937& rng) {
  static const std::vector<std::string> kParts = {
      "hello", " world", " the", " ", "  ",         "\n",  "\t",  "é",   "漢字",
      "🙂",  "he",     "x",    "7", "<|im_end|>", "<s>", "'ll", "...", std::string(1, '\0'),
      "\x7F",  "<0x41>"};
  std::string text;
  for (size_t n = rng() % 12; n > 0; --n) text += kParts[rng() % kParts.size()];
  return text;
}

TEST(Vocabulary, SentencePieceTokens) {
  const Vocabulary vocabulary = load(make_sentence_piece());
  EXPECT_EQ(vocabulary.n_tokens(), sentence_piece_tokens().size());
  EXPECT_EQ(vocabulary.kind_name(), "SentencePiece");
  EXPECT_EQ(vocabulary.bos(), TokenId{1});
  EXPECT_EQ(vocabulary.eos(), TokenId{2});
  EXPECT_TRUE(vocabulary.adds_bos());
  EXPECT_TRUE(vocabulary.adds_space_prefix());
  EXPECT_THAT(pieces(vocabulary, vocabulary.tokenize("hello world")),
              ElementsAre("<s>", " hello", " world"));
  EXPECT_THAT(vocabulary.tokenize(""), ElementsAre(TokenId{1}));
  EXPECT_THAT(vocabulary.tokenize("", {.add_special = false}), ElementsAre());
  // Characters without a token become their bytes.
  EXPECT_THAT(pieces(vocabulary, vocabulary.tokenize("he🙂", {.add_special = false})),
              ElementsAre(" he", "\xF0", "\x9F", "\x99", "\x82"));
}

TEST(Vocabulary, BytePairTokens) {
  const Vocabulary vocabulary = load(make_byte_pair());
  EXPECT_EQ(vocabulary.kind_name(), "byte-pair");
  EXPECT_FALSE(vocabulary.adds_bos());
  EXPECT_FALSE(vocabulary.adds_space_prefix());
  EXPECT_THAT(pieces(vocabulary, vocabulary.tokenize("hello world, the")),
              ElementsAre("hello", " world", ",", " the"));
}

TEST(Vocabulary, ReadsControlTokensOnlyWhenAsked) {
  const Vocabulary vocabulary = load(make_byte_pair());
  EXPECT_THAT(pieces(vocabulary, vocabulary.tokenize("he<|im_end|>", {.parse_special = true})),
              ElementsAre("he", "<|im_end|>"));
  EXPECT_GT(vocabulary.tokenize("he<|im_end|>").size(), 2u);
  EXPECT_EQ(vocabulary.tokenize("<tool>").size(), 1u);  // user-defined ones always
}

TEST(Vocabulary, KnowsControlAndEndTokens) {
  const Vocabulary vocabulary = load(make_sentence_piece());
  const TokenId end_of_turn{static_cast<int32_t>(vocabulary.n_tokens()) - 1};
  EXPECT_TRUE(vocabulary.is_control(end_of_turn));
  EXPECT_TRUE(vocabulary.is_end_of_generation(end_of_turn));
  EXPECT_TRUE(vocabulary.is_end_of_generation(TokenId{2}));
  EXPECT_FALSE(vocabulary.is_end_of_generation(TokenId{1}));
  EXPECT_FALSE(vocabulary.is_control(TokenId{100}));
  EXPECT_EQ(vocabulary.piece(end_of_turn), "");
  EXPECT_EQ(vocabulary.piece(end_of_turn, ControlTokens::kRendered), "<end_of_turn>");
}

TEST(Vocabulary, DoesNotMakeUpSpecialTokens) {
  // libllama takes token 11 for both where a byte-pair vocabulary names none.
  const gguf_context_ptr gguf = make_byte_pair();
  gguf_remove_key(gguf.get(), "tokenizer.ggml.bos_token_id");
  gguf_remove_key(gguf.get(), "tokenizer.ggml.eos_token_id");
  const Vocabulary vocabulary = load(gguf);
  EXPECT_EQ(vocabulary.bos(), std::nullopt);
  EXPECT_EQ(vocabulary.eos(), std::nullopt);
  EXPECT_FALSE(vocabulary.is_end_of_generation(TokenId{11}));
  EXPECT_TRUE(vocabulary.is_end_of_generation(
      vocabulary.tokenize("<|im_end|>", {.parse_special = true}).front()));

  gguf_set_val_bool(gguf.get(), "tokenizer.ggml.add_bos_token", true);
  EXPECT_THAT(error_of(ErrorCode::kInvalidFile, [&] { load(gguf); }), HasSubstr("bos_token_id"));
}

TEST(Vocabulary, RenderedTextGetsOneBeginning) {
  const Vocabulary vocabulary = load(make_sentence_piece());
  EXPECT_THAT(pieces(vocabulary, vocabulary.tokenize_rendered("<s>hello")),
              ElementsAre("<s>", " hello"));
  EXPECT_THAT(pieces(vocabulary, vocabulary.tokenize_rendered("hello<end_of_turn>")),
              ElementsAre("<s>", " hello", "<end_of_turn>"));
  EXPECT_THAT(vocabulary.tokenize_rendered(""), ElementsAre(TokenId{1}));
  const Vocabulary without = load(make_byte_pair());
  EXPECT_THAT(pieces(without, without.tokenize_rendered("hello")), ElementsAre("hello"));
}

TEST(Vocabulary, DetokenizeInvertsTokenize) {
  std::mt19937 rng(3);
  for (const auto& gguf : {make_sentence_piece(), make_byte_pair(), make_byte_pair("default")}) {
    const Vocabulary vocabulary = load(gguf);
    for (int i = 0; i < 500; ++i) {
      const std::string text = random_text(rng);
      ASSERT_EQ(vocabulary.detokenize(vocabulary.tokenize(text)), text);
    }
  }
}

TEST(Vocabulary, RefusesTextThatIsNotUtf8OrTooLong) {
  for (const auto& gguf : {make_sentence_piece(), make_byte_pair()}) {
    const Vocabulary vocabulary = load(gguf);
    EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { vocabulary.tokenize("he\xFFllo"); }),
                HasSubstr("at byte 2"));
    const std::string long_text(Vocabulary::kMaxTextBytes + 1, 'a');
    EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { vocabulary.tokenize(long_text); }),
                HasSubstr("at most"));
  }
}

TEST(Vocabulary, RefusesTokensThatDoNotExist) {
  const Vocabulary vocabulary = load(make_byte_pair());
  for (const int32_t id : {-1, static_cast<int32_t>(vocabulary.n_tokens()), INT32_MAX, INT32_MIN}) {
    const TokenId token{id};
    EXPECT_FALSE(vocabulary.contains(token));
    EXPECT_THROW(vocabulary.piece(token), Error);
    EXPECT_THROW(vocabulary.is_control(token), Error);
    EXPECT_THROW(vocabulary.is_end_of_generation(token), Error);
    EXPECT_THROW(vocabulary.detokenize(std::vector{token}), Error);
  }
}

TEST(Vocabulary, SaysWhenACharacterHasNoToken) {
  const gguf_context_ptr gguf = make_sentence_piece();
  std::vector<TestToken> tokens = sentence_piece_tokens();
  tokens.erase(tokens.begin() + 3, tokens.begin() + 259);  // the byte tokens
  set_tokens(gguf.get(), tokens);
  const Vocabulary vocabulary = load(gguf);
  EXPECT_EQ(vocabulary.detokenize(vocabulary.tokenize("hello")), "hello");
  EXPECT_THAT(error_of(ErrorCode::kInvalidArgument, [&] { vocabulary.tokenize("hello?"); }),
              HasSubstr("no token for some character"));
}

// With this pre-tokenizer libllama uses std::regex, which recurses over each of
// these characters: on an ordinary stack, 8 MiB, it would overflow.
TEST(Vocabulary, SurvivesLongRuns) {
  const Vocabulary vocabulary = load(make_byte_pair("default"));
  for (const char c : {'=', '7', 'a', ' ', '\n'}) {
    const std::string text(200'000, c);
    EXPECT_EQ(vocabulary.detokenize(vocabulary.tokenize(text)), text);
  }
}

TEST(Vocabulary, ServesManyThreads) {
  const Vocabulary vocabulary = load(make_byte_pair("default"));
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&vocabulary, seed] {
      std::mt19937 rng(seed);
      for (int i = 0; i < 200; ++i) {
        const std::string text = random_text(rng);
        EXPECT_EQ(vocabulary.detokenize(vocabulary.tokenize(text)), text);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Vocabulary, OutlivesItsMetadata) {
  gguf_context_ptr gguf = make_byte_pair();
  const Vocabulary vocabulary = load(gguf);
  gguf.reset();
  EXPECT_EQ(vocabulary.detokenize(vocabulary.tokenize("hello the world")), "hello the world");
}

}  // namespace
}  // namespace forerun
