#include "grammar/grammar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "text/test_vocabularies.h"

namespace forerun {
namespace {

class GrammarTest : public ::testing::Test {
 protected:
  std::shared_ptr<const Constraint> start(const std::string& text) {
    return start_of({.text = text}, vocabulary_);
  }
  // Whether the text may be, and may end there.
  bool allows(const std::string& grammar, const std::string& text) {
    auto place = start(grammar);
    for (const TokenId token : vocabulary_.tokenize(text, {.add_special = false})) {
      if (!place->allows(token)) return false;
      place = place->after(token);
    }
    return place->allows(*vocabulary_.eos());
  }

  Vocabulary vocabulary_ = Vocabulary::load(GgufMetadata(make_byte_pair().get()));
};

TEST_F(GrammarTest, AllowsWhatItDescribes) {
  EXPECT_TRUE(allows("root ::= \"ab\" [0-9]+", "ab7"));
  EXPECT_TRUE(allows("root ::= \"ab\" [0-9]+", "ab123"));
  EXPECT_FALSE(allows("root ::= \"ab\" [0-9]+", "ab"));
  EXPECT_FALSE(allows("root ::= \"ab\" [0-9]+", "abc"));
  EXPECT_TRUE(allows("root ::= \"\xc3\xa9\"", "\xc3\xa9")) << "a character of two bytes, a token each";
}

TEST_F(GrammarTest, MasksWhatItDoesNotAllow) {
  const auto place = start("root ::= [ab]");
  std::vector<float> logits(vocabulary_.n_tokens(), 1.0f);
  place->mask(logits);
  for (int32_t id = 0; id < static_cast<int32_t>(logits.size()); ++id) {
    EXPECT_EQ(std::isfinite(logits[static_cast<size_t>(id)]), place->allows(TokenId{id})) << id;
  }
}

TEST_F(GrammarTest, PlacesDoNotInfluenceEachOther) {
  const auto tokens = vocabulary_.tokenize("ab", {.add_special = false});
  const auto root = start("root ::= \"aa\" | \"ab\" | \"b\"");
  const auto a = root->after(tokens[0]);
  const auto b = root->after(tokens[1]);
  EXPECT_TRUE(a->allows(tokens[0]));
  EXPECT_FALSE(b->allows(tokens[0]));
  EXPECT_TRUE(a->allows(tokens[1]));
  EXPECT_TRUE(root->allows(tokens[1]));
  EXPECT_TRUE(b->allows(*vocabulary_.eos()));
}

TEST_F(GrammarTest, NothingFollowsWhatIsForbidden) {
  const auto tokens = vocabulary_.tokenize("xa", {.add_special = false});
  const auto nowhere = start("root ::= \"a\"")->after(tokens[0]);
  EXPECT_FALSE(nowhere->allows(tokens[1]));
  EXPECT_FALSE(nowhere->after(tokens[1])->allows(tokens[1]));
  EXPECT_FALSE(start("root ::= \"a\"")->after(*vocabulary_.eos())->allows(tokens[1]))
      << "too early to end";
}

TEST_F(GrammarTest, ALazyOneWaitsForItsTrigger) {
  const auto tokens = vocabulary_.tokenize("x<ay", {.add_special = false});
  auto place = start_of(
      {.text = "root ::= \"<a\"", .is_lazy = true, .trigger_patterns = {"[\\s\\S]*?(<)[\\s\\S]*"}},
      vocabulary_);
  EXPECT_TRUE(place->allows(tokens[3]));
  place = place->after(tokens[0])->after(tokens[1]);
  EXPECT_TRUE(place->allows(tokens[2]));
  EXPECT_FALSE(place->allows(tokens[3]));
}

TEST_F(GrammarTest, APrefixIsBehindIt) {
  const auto tokens = vocabulary_.tokenize("ab", {.add_special = false});
  EXPECT_TRUE(
      start_of({.text = "root ::= \"ab\"", .prefix = {tokens[0]}}, vocabulary_)->allows(tokens[1]));
  EXPECT_THROW(start_of({.text = "root ::= \"ab\"", .prefix = {tokens[1]}}, vocabulary_), Error);
}

TEST_F(GrammarTest, KnowsWhatMustFollow) {
  const auto text_of = [&](const std::vector<TokenId>& tokens) {
    std::string text;
    for (const TokenId token : tokens) text += vocabulary_.piece(token);
    return text;
  };
  const auto place = start("root ::= \"abab\" [0-9] \"xy\"?");
  EXPECT_EQ(text_of(place->forced()), "abab");
  const auto a = vocabulary_.tokenize("a", {.add_special = false})[0];
  EXPECT_EQ(text_of(place->after(a)->forced()), "bab");
  EXPECT_EQ(text_of(place->forced()), "abab") << "looking ahead leaves the place as it is";
  EXPECT_TRUE(place->allows(a));
  EXPECT_TRUE(start("root ::= \"ab\" | \"b\"")->forced().empty());
  EXPECT_EQ(text_of(start("root ::= \"ab\" | \"ac\"")->forced()), "a");
  EXPECT_TRUE(start("root ::= \"a\"?")->forced().empty()) << "it may end";
  EXPECT_TRUE(start("root ::= [ab]")->forced().empty());
}

TEST_F(GrammarTest, OneThatMakesNoSenseIsAnError) {
  for (const char* text : {"root ::= this is (not valid", "nothing", "a ::= \"b\"", "root ::= root"}) {
    EXPECT_THROW(start(text), Error) << text;
  }
}

TEST_F(GrammarTest, RefusesWhatWouldTakeTheStack) {
  const auto nested = [](int depth) {
    const auto n = static_cast<size_t>(depth);
    return "root ::= " + std::string(n, '(') + "\"a\"" + std::string(n, ')');
  };
  EXPECT_TRUE(allows(nested(150), "a"));
  EXPECT_THROW(start(nested(100000)), Error);
  EXPECT_THROW(start("root ::= (#\r" + std::string(100000, '(')), Error) << "behind a comment";
  EXPECT_TRUE(allows("root ::= \"" + std::string(1000, '(') + "\"", std::string(1000, '(')));
  EXPECT_THROW(start("root ::= \"" + std::string(2000000, 'a') + "\""), Error);
  std::string chain = "root ::= r1\n";
  for (int i = 1; i < 40000; ++i) {
    chain += "r" + std::to_string(i) + " ::= r" + std::to_string(i + 1) + "\n";
  }
  EXPECT_TRUE(allows(chain + "r40000 ::= \"a\"", "a"));
}

TEST_F(GrammarTest, HoweverManyWaysLeadToAPlaceItCountsOnce) {
  std::string optional = "root ::=";
  for (int i = 0; i < 150; ++i) optional += " \"a\"?";
  EXPECT_TRUE(allows(optional, std::string(150, 'a')));
  EXPECT_FALSE(allows(optional, std::string(151, 'a')));
  std::vector<float> logits(vocabulary_.n_tokens());
  start(optional)->mask(logits);
}

TEST_F(GrammarTest, GivesUpWhatIsTooAmbiguous) {
  std::string optional = "root ::=", twice = "root ::= r0\n";
  for (int i = 0; i < 20000; ++i) optional += " .?";
  for (int i = 0; i < 100; ++i) {
    const std::string next = " r" + std::to_string(i + 1);
    twice += "r" + std::to_string(i) + " ::=" + next + " |" + next + next + "\n";
  }
  for (const std::string& text : {optional, twice + "r100 ::= \"a\" | \"\""}) {
    const auto place = start(text);
    std::vector<float> logits(vocabulary_.n_tokens());
    EXPECT_THROW(place->mask(logits), Error);
    EXPECT_TRUE(place->forced().empty());
    EXPECT_FALSE(place->after(TokenId{0})->after(TokenId{1})->allows(TokenId{2}));
  }
}

TEST_F(GrammarTest, HoldsCharactersThatTokensCut) {
  const auto byte = [&](const char* text, size_t i) {
    return vocabulary_.tokenize(text, {.add_special = false})[i];
  };
  const TokenId lead = byte("\xc3\xa9", 0), trail = byte("\xc3\xa9", 1), other = byte("\xc3\xa8", 1);
  const auto begun = start("root ::= [^\xc3\xa9]")->after(lead);
  EXPECT_TRUE(begun->allows(other));
  EXPECT_FALSE(begun->allows(trail));
  EXPECT_FALSE(begun->allows(lead)) << "within a character";
  EXPECT_FALSE(begun->allows(*vocabulary_.eos()));
  EXPECT_FALSE(start("root ::= [a-z]")->allows(lead)) << "begins none of these";
}

TEST_F(GrammarTest, SaysWhatIsWrong) {
  const auto complaint = [&](const std::string& grammar) -> std::string {
    try {
      start(grammar);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(complaint("# none\nroot ::= other").find("there is no rule other"), std::string::npos);
  EXPECT_NE(complaint("root ::= [0-9]{19,15}").find("at least 19 and at most 15"), std::string::npos);
  EXPECT_EQ(complaint("root ::= [0-9]{15,19} \"{19,15}\""), "");
  EXPECT_NE(complaint("root ::= (\"a\"").find("expecting ')'"), std::string::npos);
  EXPECT_NE(complaint("root ::= root \"a\"").find("begins with itself"), std::string::npos);
  EXPECT_LT(complaint("root ::= \"a\" )" + std::string(5000, 'x')).size(), 300);
}

}  // namespace
}  // namespace forerun
