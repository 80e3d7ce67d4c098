#include "text/vocabulary_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <random>

#include "core/error.h"
#include "text/test_vocabulary_kinds.h"
#include "text/vocabulary.h"

namespace forerun {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

VocabularyFacts check(const gguf_context_ptr& gguf) {
  return check_vocabulary(GgufMetadata(gguf.get()));
}

uint64_t fingerprint(const gguf_context_ptr& gguf) {
  return check(gguf).fingerprint;
}

// A damage, and what the message must say about it.
struct Damage {
  std::function<void(gguf_context*)> apply;
  std::string message;
  ErrorCode code = ErrorCode::kInvalidFile;
};

void expect_refused(const gguf_context_ptr& gguf, const Damage& damage) {
  damage.apply(gguf.get());
  try {
    Vocabulary::load(GgufMetadata(gguf.get()));
    ADD_FAILURE() << "loaded in spite of: " << damage.message;
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), damage.code);
    EXPECT_THAT(error.what(), HasSubstr(damage.message));
    EXPECT_THAT(error.what(), Not(HasSubstr("\n")));
  }
}

template <typename Change>
std::function<void(gguf_context*)> with_tokens(std::vector<TestToken> tokens, const Change& change) {
  change(tokens);
  return [tokens](gguf_context* gguf) { set_tokens(gguf, tokens); };
}

auto removing(const char* key) {
  return [key](gguf_context* gguf) { gguf_remove_key(gguf, key); };
}

auto setting(const char* key, const char* value) {
  return [=](gguf_context* gguf) { gguf_set_val_str(gguf, key, value); };
}

TEST(VocabularyCheck, AcceptsWhatIsWhole) {
  const VocabularyFacts spm = check(make_sentence_piece());
  EXPECT_EQ(spm.kind, TokenizerKind::kSentencePiece);
  EXPECT_EQ(spm.n_tokens, sentence_piece_tokens().size());
  EXPECT_TRUE(spm.adds_space_prefix);
  EXPECT_TRUE(spm.names_bos && spm.names_eos);
  const VocabularyFacts bpe = check(make_byte_pair());
  EXPECT_EQ(bpe.kind, TokenizerKind::kBytePair);
  EXPECT_FALSE(bpe.adds_space_prefix);
}

TEST(VocabularyCheck, RefusesDamagedSentencePiece) {
  const std::vector<TestToken> tokens = sentence_piece_tokens();
  using Tokens = std::vector<TestToken>;
  const std::vector<Damage> damages = {
      {removing("general.architecture"), "general.architecture"},
      {removing("tokenizer.ggml.model"), "no tokenizer"},
      {removing("tokenizer.ggml.tokens"), "no tokens"},
      {setting("tokenizer.ggml.model", "nonsense"), "'nonsense' is not supported",
       ErrorCode::kUnsupported},
      {setting("tokenizer.ggml.model", "none"), "not supported", ErrorCode::kUnsupported},
      {setting("tokenizer.ggml.tokens", "a"), "should be of type arr"},
      {setting("tokenizer.ggml.add_bos_token", "yes"), "add_bos_token should be of type bool"},
      {setting("general.architecture", "no such thing"), "no such thing"},
      {[](gguf_context* g) { gguf_set_val_i32(g, "tokenizer.ggml.padding_token_id", 3); },
       "padding_token_id"},
      {[](gguf_context* g) { gguf_set_val_i32(g, "general.name", 3); }, "general.name"},
      {[](gguf_context* g) { gguf_set_val_u32(g, "tokenizer.ggml.bos_token_id", 1000); },
       "bos_token_id is 1000"},
      {[](gguf_context* g) { gguf_set_val_u32(g, "tokenizer.ggml.eos_token_id", UINT32_MAX); },
       "eos_token_id"},
      {[](gguf_context* g) { set_strings(g, "tokenizer.ggml.scores", {"a"}); },
       "should be an array of f32"},
      {with_tokens(tokens, [](Tokens& t) { t.clear(); }), "no tokens"},
      {with_tokens(tokens, [](Tokens& t) { t[270].text = t[5].text; }), "'<0x02>') appears twice"},
      {with_tokens(tokens, [](Tokens& t) { t[7].text = "a\n"; }), "should be '<0x..>' but is 'a\\x0a'"},
      {with_tokens(tokens, [](Tokens& t) { t[280].type = kByte; }), "of type byte"},
      {with_tokens(tokens, [](Tokens& t) { t[270].score = std::nanf(""); }),
       "token 270 is not a number"},
      {with_tokens(tokens, [](Tokens& t) { t[270].text = std::string(5000, 'a'); }), "longer than"},
      {with_tokens(tokens, [](Tokens& t) { t[270].text = "", t[271].text = "[EMPTY_270]"; }),
       "is taken"},
      {[](gguf_context* g) {
         const std::vector<int32_t> types(10, 1);
         gguf_set_arr_data(g, "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(), types.size());
       },
       "token_type has 10 entries"},
      {[](gguf_context* g) {
         const std::vector<float> scores(10, 1);
         gguf_set_arr_data(g, "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(), scores.size());
       },
       "scores has 10 entries"},
      {[](gguf_context* g) { gguf_set_val_str(g, "general.name", "my Phi-3 mini"); }, "<|endoftext|>"},
  };
  for (const Damage& damage : damages) expect_refused(make_sentence_piece(), damage);
}

TEST(VocabularyCheck, RefusesDamagedBytePair) {
  const std::vector<Damage> damages = {
      {removing("tokenizer.ggml.merges"), "no merges"},
      {setting("tokenizer.ggml.merges", "a b"), "merges should be of type arr"},
      {[](gguf_context* g) {
         set_strings(g, "tokenizer.ggml.merges", {"a b", "ab"});
       },
       "entry 1 ('ab')"},
      {[](gguf_context* g) { set_strings(g, "tokenizer.ggml.merges", {""}); }, "entry 0 ('')"},
      {setting("tokenizer.ggml.pre", "nonsense"), "nonsense"},
      {setting("tokenizer.ggml.pre", "whitespace"), "'whitespace' is not supported",
       ErrorCode::kUnsupported},
  };
  for (const Damage& damage : damages) expect_refused(make_byte_pair(), damage);
}

TEST(VocabularyCheck, FingerprintTellsTokenizersApart) {
  const uint64_t original = fingerprint(make_byte_pair());
  EXPECT_NE(original, fingerprint(make_sentence_piece()));
  EXPECT_NE(original, fingerprint(make_byte_pair("default")));

  const auto changed = [](const auto& change) {
    const gguf_context_ptr gguf = make_byte_pair();
    std::vector<TestToken> tokens = byte_pair_tokens();
    std::vector<std::string> merges = byte_pair_merges();
    change(tokens, merges);
    set_tokens(gguf.get(), tokens);
    set_strings(gguf.get(), "tokenizer.ggml.merges", merges);
    return fingerprint(gguf);
  };
  EXPECT_EQ(original, changed([](auto&, auto&) {}));
  EXPECT_NE(original, changed([](auto& tokens, auto&) { std::swap(tokens[0], tokens[1]); }));
  EXPECT_NE(original, changed([](auto& tokens, auto&) { tokens.back().type = kNormal; }));
  EXPECT_NE(original, changed([](auto& tokens, auto&) { tokens.push_back({"one more"}); }));
  EXPECT_NE(original, changed([](auto&, auto& merges) { std::swap(merges[0], merges[1]); }));
  EXPECT_NE(original, changed([](auto&, auto& merges) { merges.pop_back(); }));
}

TEST(VocabularyCheck, FingerprintIgnoresTheRest) {
  const gguf_context_ptr gguf = make_byte_pair();
  const uint64_t original = fingerprint(gguf);
  gguf_set_val_str(gguf.get(), "tokenizer.chat_template", "{{ messages }}");
  gguf_set_val_str(gguf.get(), "general.name", "another");
  gguf_set_val_u32(gguf.get(), "tokenizer.ggml.eos_token_id", 3);
  EXPECT_EQ(fingerprint(gguf), original);
}

// Fingerprints are stored in files: these values must never change.
TEST(VocabularyCheck, FingerprintIsStable) {
  EXPECT_EQ(fingerprint(make_byte_pair()), 11825521943753563419u);
  EXPECT_EQ(fingerprint(make_sentence_piece()), 5165396208331722012u);
}

// Random damage to everything libllama reads: whatever passes must be usable.
class Mutator {
 public:
  explicit Mutator(unsigned seed) : rng_(seed) {}

  void mutate(gguf_context* gguf, std::vector<TestToken> tokens) {
    for (size_t n = 1 + rng_() % 3; n > 0; --n) {
      switch (rng_() % 7) {
        case 5: damage_map(gguf); break;
        case 0: gguf_remove_key(gguf, any_key(gguf).c_str()); break;
        case 1: set_any_value(gguf, any_key(gguf)); break;
        case 2:
          for (size_t i = 1 + rng_() % 4; i > 0; --i) damage(tokens[rng_() % tokens.size()], tokens);
          if (rng_() % 4 == 0) tokens.resize(1 + rng_() % tokens.size());
          set_tokens(gguf, tokens);
          break;
        case 3:
          gguf_set_val_u32(gguf, pick(kIds),
                           static_cast<uint32_t>(rng_() % 2 != 0 ? rng_() : rng_() % 400));
          break;
        case 4: gguf_set_val_bool(gguf, pick(kFlags), rng_() % 2 != 0); break;
        default: gguf_set_val_str(gguf, pick(kNames), pick(kValues)); break;
      }
    }
  }

 private:
  static constexpr std::array kIds = {
      "tokenizer.ggml.bos_token_id",      "tokenizer.ggml.eos_token_id",
      "tokenizer.ggml.eot_token_id",      "tokenizer.ggml.unknown_token_id",
      "tokenizer.ggml.padding_token_id",  "tokenizer.ggml.fim_pad_token_id",
      "tokenizer.ggml.seperator_token_id"};
  static constexpr std::array kFlags = {
      "tokenizer.ggml.add_bos_token", "tokenizer.ggml.add_eos_token", "tokenizer.ggml.add_sep_token",
      "tokenizer.ggml.add_space_prefix", "tokenizer.ggml.remove_extra_whitespaces"};
  static constexpr std::array kNames = {"tokenizer.ggml.model", "tokenizer.ggml.pre", "general.name",
                                        "general.architecture"};
  static constexpr std::array kValues = {"llama",   "gpt2",      "gemma4", "bert",         "t5",
                                         "rwkv",    "plamo2",    "none",   "hybriddna",    "whitespace",
                                         "default", "llama-bpe", "qwen2",  "deepseek-llm", "kimi-k2",
                                         "glm4",    "tekken",    "phi-3",  "gemma3",       ""};

  template <typename Array>
  const char* pick(const Array& array) {
    return array[rng_() % array.size()];
  }

  std::string any_key(const gguf_context* gguf) {
    return gguf_get_key(gguf, static_cast<int64_t>(rng_() % static_cast<size_t>(gguf_get_n_kv(gguf))));
  }

  void damage(TestToken& token, const std::vector<TestToken>& tokens) {
    switch (rng_() % 5) {
      case 0: token.text = tokens[rng_() % tokens.size()].text; break;
      case 1: token.text.clear(); break;
      case 2: token.type = static_cast<int32_t>(rng_() % 9); break;
      case 3: token.score = rng_() % 2 != 0 ? std::nanf("") : INFINITY; break;
      default:
        token.text.resize(1 + rng_() % 12);
        for (char& c : token.text) c = static_cast<char>(1 + rng_() % 255);
        break;
    }
  }

  // Unigram's map of characters.
  void damage_map(gguf_context* gguf) {
    std::vector<uint8_t> map = character_map({{"ﬁ", "fi"}, {"\t", " "}, {"É", "é"}, {"①", ""}});
    for (size_t i = 1 + rng_() % 4; i > 0; --i) {
      const size_t end = rng_() % 3 == 0 ? map.size() : std::min<size_t>(map.size(), 2048);
      map[rng_() % end] = static_cast<uint8_t>(rng_());
    }
    if (rng_() % 4 == 0) map.resize(rng_() % map.size());
    gguf_set_arr_data(gguf, "tokenizer.ggml.precompiled_charsmap", GGUF_TYPE_UINT8, map.data(),
                      map.size());
  }

  void set_any_value(gguf_context* gguf, const std::string& key) {
    const std::vector<int32_t> numbers(rng_() % 300, static_cast<int32_t>(rng_()));
    switch (rng_() % 7) {
      case 0: gguf_set_val_u32(gguf, key.c_str(), static_cast<uint32_t>(rng_())); break;
      case 1: gguf_set_val_i32(gguf, key.c_str(), static_cast<int32_t>(rng_())); break;
      case 2: gguf_set_val_str(gguf, key.c_str(), "x"); break;
      case 3: gguf_set_val_bool(gguf, key.c_str(), true); break;
      case 4:
        gguf_set_arr_data(gguf, key.c_str(), GGUF_TYPE_INT32, numbers.data(), numbers.size());
        break;
      case 5:
        gguf_set_arr_data(gguf, key.c_str(), GGUF_TYPE_FLOAT32, numbers.data(), numbers.size());
        break;
      default: set_strings(gguf, key.c_str(), std::vector<std::string>(rng_() % 3, "a b")); break;
    }
  }

  std::mt19937 rng_;
};

void use(const Vocabulary& vocabulary) {
  for (size_t i = 0; i < vocabulary.n_tokens(); ++i) {
    const TokenId token{static_cast<int32_t>(i)};
    vocabulary.piece(token, ControlTokens::kRendered);
    vocabulary.is_end_of_generation(token);
  }
  for (const char* text :
       {"", "hello  world\n\n the <s><tool> x", "漢字🙂<|im_end|>", "   ", "ﬁÉ\t①\\x41"}) {
    for (const bool parse_special : {false, true}) {
      try {
        vocabulary.detokenize(vocabulary.tokenize(text, {.parse_special = parse_special}));
      } catch (const Error& error) {
        ASSERT_THAT(error.what(), HasSubstr("no token"));
      }
    }
  }
}

struct Kind {
  gguf_context_ptr (*make)();
  std::vector<TestToken> (*tokens)();
};
const std::vector<Kind> kKinds = {{[] { return make_byte_pair(); }, byte_pair_tokens},
                                  {make_sentence_piece, sentence_piece_tokens},
                                  {make_word_piece, word_piece_tokens},
                                  {make_unigram, unigram_tokens},
                                  {make_rwkv, rwkv_tokens},
                                  {make_plamo2, plamo2_tokens}};

TEST(VocabularyCheck, RandomDamageNeverAborts) {
  size_t n_loaded = 0;
  size_t n_refused = 0;
  for (unsigned seed = 0; seed < 3000; ++seed) {
    const Kind& kind = kKinds[seed % kKinds.size()];
    const gguf_context_ptr gguf = kind.make();
    Mutator(seed).mutate(gguf.get(), kind.tokens());
    try {
      use(Vocabulary::load(GgufMetadata(gguf.get())));
      ++n_loaded;
    } catch (const Error& error) {
      ASSERT_THAT(error.what(), Not(HasSubstr("\n"))) << "seed " << seed;
      ++n_refused;
    }
  }
  EXPECT_GT(n_loaded, 200u);
  EXPECT_GT(n_refused, 500u);
}

}  // namespace
}  // namespace forerun
