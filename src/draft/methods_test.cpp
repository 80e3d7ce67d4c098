#include "draft/methods.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <set>
#include <string>

#include "core/error.h"
#include "draft/draft_test_support.h"

namespace forerun {
namespace {

constexpr int kLetters = 5;

DraftResources resources() {
  std::mt19937 random(11);
  Tokens text = random_tokens(random, 500, kLetters);
  text.push_back(Segment::kSeparator);
  const auto list = std::make_shared<const SegmentList>(
      SegmentList{Segment::build(std::move(text), {.tokenizer = 1, .n_vocab = kLetters}, 1)});
  return {.segments = [list] { return list; }};
}

template <typename Number>
std::string shown(const NumberOption<Number>& option) {
  EXPECT_TRUE(option.value >= option.range.min && option.value <= option.range.max);
  return fmt::to_string(option.value);
}
std::string shown(const SwitchOption& option) {
  return fmt::to_string(option.value);
}
std::string shown(const TextOption& option) {
  EXPECT_TRUE(option.choices.empty() || std::ranges::count(option.choices, option.value) == 1);
  return option.value;
}

// Names with their values, as a printer would show them.
std::map<std::string, std::string> printed(MethodOptions& options) {
  std::map<std::string, std::string> values;
  OptionVisitor printing([&](const OptionText& text, const Option& option) {
    EXPECT_FALSE(text.help.empty());
    const std::string value = std::visit([](const auto& field) { return shown(field); }, option);
    EXPECT_TRUE(values.emplace(text.name, value).second) << text.name << " is there twice";
  });
  options.describe(printing);
  return values;
}

TEST(Methods, AreListed) {
  std::set<std::string_view> names;
  for (const MethodInfo& method : draft_methods()) {
    names.insert(method.name);
    EXPECT_FALSE(method.summary.empty());
    if (method.drafts_with != DraftsWith::kTexts) continue;
    EXPECT_EQ(make_drafters(method.name, {}, resources()).texts.size(), method.name == "none" ? 0u : 1u);
  }
  EXPECT_EQ(names.size(), draft_methods().size());
  for (const char* name : {"none", "pld", "rest", "pia", "jacobi", "sssd", "suffix"})
    EXPECT_TRUE(names.contains(name));
}

TEST(Methods, OptionsAreSetByName) {
  MethodOptions options;
  set_method_option(options, "pld-ngram", "4");
  set_method_option(options, "pld-match", "first");
  set_method_option(options, "suffix-factor", "1.5");
  set_method_option(options, "jacobi-text-ngrams", "false");
  EXPECT_EQ(options.pld.ngram, 4);
  EXPECT_EQ(options.pld.match, "first");
  EXPECT_EQ(options.suffix.factor, 1.5);
  EXPECT_FALSE(options.jacobi.text_ngrams);
  EXPECT_EQ(printed(options).at("pld-ngram"), "4");
  EXPECT_EQ(printed(options).at("jacobi-text-ngrams"), "false");
}

TEST(Methods, SayWhatIsWrong) {
  const auto message = [](const auto& action) -> std::string {
    try {
      action();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "no error";
  };
  MethodOptions options;
  const auto setting = [&](const char* name, const char* value) {
    return message([&] { set_method_option(options, name, value); });
  };
  EXPECT_EQ(setting("pld-ngram", "0"), "pld-ngram is 0: choose a number from 1 to 64");
  EXPECT_EQ(setting("pld-ngram", "3x"), "pld-ngram is '3x': choose a number from 1 to 64");
  EXPECT_EQ(setting("pld-ngram", ""), "pld-ngram is '': choose a number from 1 to 64");
  EXPECT_EQ(setting("pld-match", "best"), "pld-match is 'best': choose one of first, last");
  EXPECT_EQ(setting("jacobi-text-ngrams", "1"), "jacobi-text-ngrams is '1': choose true or false");
  EXPECT_TRUE(has_method_option("pld-ngram") && has_method_option("lookahead"));
  EXPECT_FALSE(has_method_option("ngram"));
  EXPECT_EQ(setting("ngram", "3"), "there is no drafting option 'ngram'");
  EXPECT_THAT(message([&] { make_drafters("eagle", options, {}); }),
              testing::StartsWith("there is no drafting method 'eagle': choose one of auto, none, pld"));
  options.pia.branch = -1;
  EXPECT_EQ(message([&] { make_drafters("pia", options, {}); }),
            "pia-branch is -1: choose a number from 1 to 256");
  EXPECT_EQ(make_drafters("pld", options, {}).texts.size(), 1u);
}

// Of what can be said before a model is loaded.
TEST(Methods, SayWhatIsMissing) {
  const auto message = [](std::string_view name, const MethodOptions& options) -> std::string {
    try {
      check_method(name, options);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      return error.what();
    }
    return "";
  };
  MethodOptions options;
  for (const MethodInfo& method : draft_methods()) {
    const bool needs_file = method.name == "draft" || method.name == "selfsd" || method.name == "knnssd";
    EXPECT_EQ(message(method.name, options).empty(), !needs_file) << method.name;
  }
  EXPECT_THAT(message("draft", options), testing::HasSubstr("--draft-model"));
  EXPECT_THAT(message("selfsd", options), testing::HasSubstr("--selfsd-layers"));
  EXPECT_THAT(message("knnssd", options), testing::HasSubstr("--knnssd-domains"));
  options.draft.choice.model = "some.gguf";
  EXPECT_EQ(message("draft", options), "");
  options.automatic.layers = "selfsd";
  EXPECT_THAT(message("auto", options), testing::HasSubstr("--selfsd-layers"));
  options.automatic.layers = "none";
  options.stopping.rule = "disco";
  for (const MethodInfo& method : draft_methods()) {
    if (method.drafts_with == DraftsWith::kTexts) {
      EXPECT_EQ(message(method.name, options), "") << method.name;
    }
  }
  EXPECT_THAT(message("draft", options), testing::HasSubstr("--lookahead-classifier"));
  EXPECT_THAT(message("auto", options), testing::HasSubstr("--lookahead-classifier"));
}

// What the model says: the text that is coming, whatever was drafted.
class Script : public TargetTokens {
 public:
  Script(std::span<const TokenId> text, const DraftTree& tree) : text_(text), tree_(tree) {}
  TokenId after(int32_t node) const override {
    return text_[static_cast<size_t>(tree_.depth(node)) % text_.size()];
  }

 private:
  std::span<const TokenId> text_;
  const DraftTree& tree_;
};

// The trees that a method drafts along some texts, one request after another.
std::vector<std::map<Tokens, float>> drafts(Drafter& method, std::mt19937 random, bool in_pieces) {
  std::vector<std::map<Tokens, float>> result;
  for (int request = 0; request < 4; ++request) {
    const Tokens prompt = random_tokens(random, request < 2 ? request : 60, kLetters);
    const auto drafter = method.begin(prompt);
    for (int step = 0; step < 30; ++step) {
      const DraftLimits limits = {.max_nodes = random_int(random, 0, 40),
                                  .max_depth = random_int(random, 0, 12)};
      const Tokens next = random_tokens(random, random_int(random, 1, 6), kLetters);
      const DraftTree tree = draft(*drafter, limits);
      expect_sound(tree, limits);
      result.push_back(paths(tree));
      drafter->observe(tree, Script(next, tree));
      if (in_pieces) {
        for (const TokenId token : next) drafter->append({&token, 1});
      } else {
        drafter->append(next);
      }
    }
    if (request != 2) drafter->finish();
  }
  return result;
}

std::unique_ptr<Drafter> text_drafter(const std::string& name) {
  return std::move(make_drafters(name, {}, resources()).texts.front());
}

class EveryMethod : public testing::TestWithParam<std::string> {};

TEST_P(EveryMethod, KeepsToItsLimitsAndIsDeterministic) {
  for (unsigned seed = 0; seed < 8; ++seed) {
    const auto make = [&] { return text_drafter(GetParam()); };
    const auto once = drafts(*make(), std::mt19937(seed), false);
    EXPECT_EQ(once, drafts(*make(), std::mt19937(seed), false));
    EXPECT_EQ(once, drafts(*make(), std::mt19937(seed), true));
    const bool any =
        std::any_of(once.begin(), once.end(), [](const auto& tree) { return !tree.empty(); });
    EXPECT_TRUE(any);
  }
}

TEST_P(EveryMethod, RequestsRunSideBySide) {
  const auto method = text_drafter(GetParam());
  std::mt19937 random(8);
  std::vector<std::unique_ptr<RequestDrafter>> drafters;
  for (int i = 0; i < 3; ++i) drafters.push_back(method->begin(random_tokens(random, 10 * i, kLetters)));
  for (int step = 0; step < 60; ++step) {
    const auto& drafter = drafters[random() % drafters.size()];
    const DraftLimits limits = {.max_nodes = 20, .max_depth = 10};
    const DraftTree tree = draft(*drafter, limits);
    expect_sound(tree, limits);
    const Tokens next = random_tokens(random, random_int(random, 1, 6), kLetters);
    drafter->observe(tree, Script(next, tree));
    drafter->append(next);
  }
  for (const auto& drafter : drafters) drafter->finish();
}

std::vector<std::string> names() {
  std::vector<std::string> result;
  for (const MethodInfo& method : draft_methods()) {
    if (method.drafts_with == DraftsWith::kTexts && method.name != "none")
      result.emplace_back(method.name);
  }
  return result;
}
INSTANTIATE_TEST_SUITE_P(All, EveryMethod, testing::ValuesIn(names()),
                         [](const auto& name) { return name.param; });

}  // namespace
}  // namespace forerun
