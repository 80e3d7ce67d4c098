// What a grammar allows, token by token along random texts, against libllama's own matching.
#include <gtest/gtest.h>
#include <llama-grammar.h>

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "grammar/grammar.h"
#include "text/test_vocabularies.h"
#include "text/utf8.h"

namespace forerun {
namespace {

constexpr const char* kJson = R"(
root ::= object
value ::= object | array | string | number | ("true" | "false" | "null") ws
object ::= "{" ws ( string ":" ws value ("," ws string ":" ws value)* )? "}" ws
array ::= "[" ws ( value ("," ws value)* )? "]" ws
string ::= "\"" ( [^"\\\x7F\x00-\x1F] | "\\" (["\\bfnrt] | "u" [0-9a-fA-F]{4}) )* "\"" ws
number ::= ("-"? ([0-9] | [1-9] [0-9]{0,15})) ("." [0-9]+)? ([eE] [-+]? [0-9] [1-9]{0,15})? ws
ws ::= | " " | "\n" [ \t]{0,20}
)";

struct Free {
  void operator()(llama_grammar* grammar) const { llama_grammar_free_impl(grammar); }
};
using Reference = std::unique_ptr<llama_grammar, Free>;

std::vector<TokenId> allowed_by(const Reference& grammar, size_t n_tokens) {
  std::vector<llama_token_data> all;
  for (size_t i = 0; i < n_tokens; ++i) all.push_back({static_cast<llama_token>(i), 0, 0});
  llama_token_data_array array{all.data(), all.size(), -1, false};
  llama_grammar_apply_impl(*grammar, &array);
  std::vector<TokenId> allowed;
  for (const llama_token_data& token : all) {
    if (token.logit == 0) allowed.push_back(TokenId{token.id});
  }
  return allowed;
}

std::vector<TokenId> allowed_by(const Constraint& place, size_t n_tokens) {
  std::vector<float> logits(n_tokens, 0.0f);
  place.mask(logits);
  std::vector<TokenId> allowed;
  for (size_t i = 0; i < n_tokens; ++i) {
    const TokenId token{static_cast<int32_t>(i)};
    EXPECT_EQ(std::isfinite(logits[i]), place.allows(token)) << i;
    if (std::isfinite(logits[i])) allowed.push_back(token);
  }
  return allowed;
}

// Those that cut no character: libllama also takes cuts that no valid text has.
std::vector<TokenId> whole(std::vector<TokenId> tokens, const Vocabulary& vocabulary) {
  std::erase_if(tokens, [&](TokenId token) {
    return !is_valid_utf8(vocabulary.piece(token, ControlTokens::kRendered));
  });
  return tokens;
}

void compare(const Vocabulary& vocabulary, const std::string& text) {
  std::mt19937 random(7);
  for (int run = 0; run < 5; ++run) {
    const Reference reference(
        llama_grammar_init_impl(vocabulary.raw(), text.c_str(), "root", false, nullptr, 0, nullptr, 0));
    ASSERT_NE(reference, nullptr);
    auto place = start_of({.text = text}, vocabulary);
    for (int i = 0; i < 40; ++i) {
      std::vector<TokenId> allowed = allowed_by(*place, vocabulary.n_tokens());
      ASSERT_EQ(whole(allowed, vocabulary),
                whole(allowed_by(reference, vocabulary.n_tokens()), vocabulary))
          << text << ", token " << i;
      allowed = whole(std::move(allowed), vocabulary);
      ASSERT_FALSE(allowed.empty());
      const TokenId token = allowed[random() % allowed.size()];
      if (vocabulary.is_end_of_generation(token)) break;
      place = place->after(token);
      llama_grammar_accept_impl(*reference, to_int(token));
    }
  }
}

TEST(GrammarReference, AllowsWhatLibllamaAllows) {
  for (const Vocabulary& vocabulary : {load(make_byte_pair()), load(make_sentence_piece())}) {
    for (const char* text :
         {kJson, "root ::= [a-z ]+ (\"\xc3\xa9\" | \"\xe2\x82\xac\" [^a-y]*)* \"!\"?",
          "root ::= (\"the\" \" \"? | \"he\" | \"ll\")+ \"o\"*",
          "root ::= line line line?\nline ::= [^\\n]{2,5} \"\\n\"", "root ::= .{3} \"x\"*"}) {
      compare(vocabulary, text);
    }
  }
}

}  // namespace
}  // namespace forerun
