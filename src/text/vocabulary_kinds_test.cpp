#include "text/vocabulary_kinds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <llama.h>

#include <cmath>
#include <functional>
#include <random>

#include "core/error.h"
#include "text/test_vocabulary_kinds.h"
#include "text/vocabulary.h"

namespace forerun {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

std::vector<std::string> pieces_of(const Vocabulary& vocabulary, const std::string& text,
                                   TokenizeOptions options = {}) {
  std::vector<std::string> texts;
  for (const TokenId token : vocabulary.tokenize(text, options)) {
    texts.push_back(vocabulary.piece(token, ControlTokens::kRendered));
  }
  return texts;
}

void expect_refused(gguf_context_ptr gguf, const std::string& message,
                    const std::function<void(gguf_context*)>& damage) {
  damage(gguf.get());
  try {
    load(gguf);
    ADD_FAILURE() << "loaded in spite of: " << message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidFile);
    EXPECT_THAT(error.what(), HasSubstr(message));
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  }
}

auto with(std::vector<TestToken> tokens, const std::function<void(std::vector<TestToken>&)>& change) {
  change(tokens);
  return [tokens](gguf_context* gguf) { set_tokens(gguf, tokens); };
}

using Tokens = std::vector<TestToken>;

TEST(VocabularyKinds, WordPieceTokens) {
  const Vocabulary vocabulary = load(make_word_piece());
  EXPECT_EQ(vocabulary.kind_name(), "WordPiece");
  EXPECT_TRUE(vocabulary.adds_bos());
  EXPECT_THAT(pieces_of(vocabulary, "Hello,  WORLD."),
              ElementsAre("[CLS]", " hello", " ,", " world", " .", "[SEP]"));
  EXPECT_THAT(pieces_of(vocabulary, "unable helloing qqq", {.add_special = false}),
              ElementsAre(" un", "able", " hello", "ing", "[UNK]"));
  EXPECT_EQ(vocabulary.detokenize(vocabulary.tokenize("the hello")), "the hello");
  EXPECT_THAT(pieces_of(vocabulary, ""), ElementsAre("[CLS]", "[SEP]"));
}

TEST(VocabularyKinds, UnigramTokens) {
  const Vocabulary vocabulary = load(make_unigram());
  EXPECT_EQ(vocabulary.kind_name(), "Unigram");
  EXPECT_FALSE(vocabulary.adds_bos());
  EXPECT_THAT(pieces_of(vocabulary, "hello world"), ElementsAre(" hello", " wor", "ld", "</s>"));
  // What the map of characters changes, and what there is no token for.
  EXPECT_THAT(pieces_of(vocabulary, "ﬁÉ\t①q🙂", {.add_special = false}),
              ElementsAre(" ", "fi", "é", " ", "l", "<unk>"));
  EXPECT_EQ(vocabulary.detokenize(vocabulary.tokenize("hello the world")), "hello the world");
  EXPECT_THAT(pieces_of(vocabulary, "he<tool>"), ElementsAre(" ", "he", "<tool>", "</s>"));
}

TEST(VocabularyKinds, RwkvTokens) {
  const Vocabulary vocabulary = load(make_rwkv());
  EXPECT_EQ(vocabulary.kind_name(), "RWKV");
  EXPECT_FALSE(vocabulary.adds_bos());
  EXPECT_THAT(pieces_of(vocabulary, "hello world\n\nhe"), ElementsAre("hello", " world", "\n\n", "he"));
  EXPECT_THAT(pieces_of(vocabulary, "漢é\\"), ElementsAre("漢", "\xc3", "\xa9", "\\"));
  EXPECT_EQ(vocabulary.eos(), TokenId{0});
}

TEST(VocabularyKinds, Plamo2Tokens) {
  const Vocabulary vocabulary = load(make_plamo2());
  EXPECT_EQ(vocabulary.kind_name(), "PLaMo-2");
  EXPECT_FALSE(vocabulary.adds_bos()) << "libllama adds none";
  EXPECT_THAT(pieces_of(vocabulary, "hello world"), ElementsAre("hello", " world"));
  EXPECT_THAT(pieces_of(vocabulary, "漢字é"), ElementsAre("漢字", "\xc3", "\xa9"));
  EXPECT_EQ(vocabulary.bos(), TokenId{1});
}

// Every text comes back, except where the kind changes texts; whatever libllama makes of it are our
// tokens.
TEST(VocabularyKinds, AnyTextCanBeTokenized) {
  const std::vector<std::string> parts = {"hello",   " world",
                                          " the",    " ",
                                          "  ",      "\n",
                                          "\t",      "é",
                                          "e\u0301", "漢字",
                                          "🙂",    "x",
                                          "7",       "<s>",
                                          "<0x41>",  "\\x41",
                                          "\u00a0",  "\u2028",
                                          "ﬁ",       "'",
                                          ",",       std::string(1, '\0'),
                                          "\x7F",    "\ufeff",
                                          "[SEP]",   "<tool>"};
  for (const auto& [make, comes_back] :
       {std::pair(&make_word_piece, false), std::pair(&make_unigram, false), std::pair(&make_rwkv, true),
        std::pair(&make_plamo2, true)}) {
    const Vocabulary vocabulary = load(make());
    std::mt19937 rng(1);
    for (int i = 0; i < 300; ++i) {
      std::string text;
      for (size_t n = rng() % 12; n > 0; --n) text += parts[rng() % parts.size()];
      for (const bool special : {false, true}) {
        const std::vector<TokenId> tokens =
            vocabulary.tokenize(text, {.add_special = special, .parse_special = special});
        std::vector<llama_token> theirs(text.size() + 8);
        const int n =
            llama_tokenize(vocabulary.raw(), text.data(), static_cast<int32_t>(text.size()),
                           theirs.data(), static_cast<int32_t>(theirs.size()), special, special);
        ASSERT_EQ(static_cast<size_t>(n), tokens.size());
        for (size_t k = 0; k < tokens.size(); ++k) ASSERT_EQ(to_int(tokens[k]), theirs[k]);
        for (const TokenId token : tokens) ASSERT_TRUE(vocabulary.contains(token)) << text;
        const bool has_mark = text.starts_with("\ufeff");  // PLaMo-2 drops it
        if (comes_back && !special && !has_mark) {
          EXPECT_EQ(vocabulary.detokenize(tokens, ControlTokens::kRendered), text);
        }
      }
    }
    EXPECT_THROW(vocabulary.tokenize("a\xff"), Error);
  }
}

TEST(VocabularyKinds, RefusesDamage) {
  const auto no_key = [](const char* key) {
    return [key](gguf_context* g) { gguf_remove_key(g, key); };
  };
  expect_refused(make_word_piece(), "unknown_token_id", no_key("tokenizer.ggml.unknown_token_id"));
  expect_refused(make_word_piece(), "bos_token_id", no_key("tokenizer.ggml.bos_token_id"));
  expect_refused(make_word_piece(), "seperator_token_id", no_key("tokenizer.ggml.seperator_token_id"));
  expect_refused(make_word_piece(), "longer than 256",
                 with(word_piece_tokens(), [](Tokens& t) { t[5].text = std::string(300, 'a'); }));
  expect_refused(make_word_piece(), "of type byte", with(word_piece_tokens(), [](Tokens& t) {
                   t.push_back({"<0x41>", kByte});
                 }));
  expect_refused(make_unigram(), "is not a number",
                 with(unigram_tokens(), [](Tokens& t) { t[5].score = std::nanf(""); }));
  expect_refused(make_unigram(), "is inf",
                 with(unigram_tokens(), [](Tokens& t) { t[5].score = INFINITY; }));
  expect_refused(make_unigram(), "unknown_token_id", [](gguf_context* g) {
    set_tokens(g, {{"a"}, {"b"}});
    gguf_remove_key(g, "tokenizer.ggml.unknown_token_id");
  });
  expect_refused(make_rwkv(), "no token for the byte 65",
                 with(rwkv_tokens(), [](Tokens& t) { t[66].text = "AA"; }));
  expect_refused(make_rwkv(), "means nothing",
                 with(rwkv_tokens(), [](Tokens& t) { t.back().text = "a\\"; }));
  expect_refused(make_rwkv(), "means nothing",
                 with(rwkv_tokens(), [](Tokens& t) { t.back().text = "\\xFF"; }));
  expect_refused(make_plamo2(), "no token for the byte 16",
                 with(plamo2_tokens(), [](Tokens& t) { t[20].type = kNormal; }));
  expect_refused(make_plamo2(), "not valid UTF-8",
                 with(plamo2_tokens(), [](Tokens& t) { t.back().text = "a\xff"; }));
  expect_refused(make_plamo2(), "too long", with(plamo2_tokens(), [](Tokens& t) {
                   for (int i = 0; i < 40; ++i)
                     t.push_back({std::string(1000, 'a') + std::to_string(i)});
                 }));
  expect_refused(make_plamo2(), "at most",
                 with(plamo2_tokens(), [](Tokens& t) { t.back().score = 1e9F; }));
}

TEST(VocabularyKinds, RefusesMapsOfCharactersThatLeadNowhere) {
  const auto mapped = [](const std::function<void(std::vector<uint8_t>&)>& change) {
    return [change](gguf_context* gguf) {
      std::vector<uint8_t> map = character_map({{"ab", "c"}, {"d", ""}});
      change(map);
      gguf_set_arr_data(gguf, "tokenizer.ggml.precompiled_charsmap", GGUF_TYPE_UINT8, map.data(),
                        map.size());
    };
  };
  using Map = std::vector<uint8_t>;
  EXPECT_NO_THROW({
    const gguf_context_ptr gguf = make_unigram();
    mapped([](Map&) {})(gguf.get());
    load(gguf);
  });
  expect_refused(make_unigram(), "is too short", mapped([](Map& m) { m.resize(3); }));
  expect_refused(make_unigram(), "shorter than it says", mapped([](Map& m) { m[3] = 0xff; }));
  expect_refused(make_unigram(), "ends within a text", mapped([](Map& m) { m.push_back('x'); }));
  expect_refused(make_unigram(), "too much text", mapped([](Map& m) {
                   m.insert(m.end(), 300, 'x');
                   m.push_back(0);
                 }));
  expect_refused(make_unigram(), "leads out of its array", mapped([](Map& m) { m[7] = 0x7f; }));
  expect_refused(make_unigram(), "map", [](gguf_context* g) {
    gguf_set_val_str(g, "tokenizer.ggml.precompiled_charsmap", "x");
    gguf_remove_key(g, "tokenizer.ggml.tokens");
    set_tokens(g, unigram_tokens());
  });
}

TEST(VocabularyKinds, FingerprintsTellApartWhatDecidesTokens) {
  const auto fingerprint = [](const gguf_context_ptr& gguf) { return load(gguf).fingerprint(); };
  const gguf_context_ptr lower = make_word_piece();
  gguf_set_val_bool(lower.get(), "tokenizer.ggml.normalizer.lowercase", false);
  EXPECT_NE(fingerprint(lower), fingerprint(make_word_piece()));
  const gguf_context_ptr unmapped = make_unigram();
  gguf_remove_key(unmapped.get(), "tokenizer.ggml.precompiled_charsmap");
  EXPECT_NE(fingerprint(unmapped), fingerprint(make_unigram()));
  const gguf_context_ptr other = make_plamo2();
  with(plamo2_tokens(), [](Tokens& t) { t.back().score = -9; })(other.get());
  EXPECT_NE(fingerprint(other), fingerprint(make_plamo2()));
}

}  // namespace
}  // namespace forerun
