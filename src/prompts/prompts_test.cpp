#include "prompts/prompts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "support/temp_dir.h"

namespace forerun {
namespace {

// 40 prompts of each of 5 categories, in turns.
std::vector<BenchPrompt> many_prompts() {
  std::vector<BenchPrompt> prompts;
  for (int i = 0; i < 200; ++i) {
    prompts.push_back({.id = std::to_string(i), .category = std::to_string(i % 5), .turns = {"?"}});
  }
  return prompts;
}

std::vector<std::string> ids_of(const std::vector<BenchPrompt>& prompts) {
  std::vector<std::string> ids;
  for (const BenchPrompt& prompt : prompts) ids.push_back(prompt.id);
  return ids;
}

int n_changes(const std::vector<BenchPrompt>& stream) {
  int n = 0;
  for (size_t i = 1; i < stream.size(); ++i) n += stream[i].category != stream[i - 1].category ? 1 : 0;
  return n;
}

TEST(MixedStream, HasEveryPromptOnceAndKeepsTheOrderOfACategory) {
  const auto prompts = many_prompts();
  for (const double ratio : {0.0, 0.3, 1.0}) {
    const auto stream = mixed_stream(prompts, ratio, 3);
    ASSERT_EQ(stream.size(), prompts.size());
    const auto ids = ids_of(stream);
    EXPECT_EQ(std::set<std::string>(ids.begin(), ids.end()).size(), prompts.size());
    std::map<std::string, int> latest;
    for (const BenchPrompt& prompt : stream) {
      const auto [known, is_first] = latest.emplace(prompt.category, -1);
      EXPECT_LT(known->second, std::stoi(prompt.id)) << "in category " << prompt.category;
      known->second = std::stoi(prompt.id);
    }
  }
}

TEST(MixedStream, LeavesACategoryAsOftenAsAsked) {
  const auto prompts = many_prompts();
  EXPECT_EQ(n_changes(mixed_stream(prompts, 0.0, 1)), 4) << "only when one is used up";
  int n = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) n += n_changes(mixed_stream(prompts, 0.3, seed));
  EXPECT_NEAR(n / (20.0 * 199), 0.3, 0.04);
  // Always to another one, until only one is left.
  const auto restless = mixed_stream(prompts, 1.0, 1);
  for (size_t i = 1; i < 150; ++i) EXPECT_NE(restless[i].category, restless[i - 1].category) << i;
}

TEST(MixedStream, IsTheSameForASeed) {
  const auto prompts = many_prompts();
  EXPECT_EQ(ids_of(mixed_stream(prompts, 0.5, 7)), ids_of(mixed_stream(prompts, 0.5, 7)));
  EXPECT_NE(ids_of(mixed_stream(prompts, 0.5, 7)), ids_of(mixed_stream(prompts, 0.5, 8)));
  EXPECT_TRUE(mixed_stream({}, 0.5, 7).empty());
  const std::vector<BenchPrompt> one{{.id = "1", .category = "", .turns = {"?"}}};
  EXPECT_EQ(ids_of(mixed_stream(one, 1.0, 7)), ids_of(one));
}

TEST(ReadPrompts, KnowWhereTheyAre) {
  const test::TempDir folder;
  const std::string path = folder.file("prompts.jsonl").string();
  std::ofstream(path) << R"({"prompt": "one"})"
                      << "\n\n"
                      << R"({"question_id": 81, "turns": ["two", "three"]})"
                      << "\n"
                      << R"({"id": "last", "prompt": "four"})"
                      << "\n";
  const std::vector<BenchPrompt> prompts = read_prompts(path).prompts;
  ASSERT_EQ(prompts.size(), 3u);
  EXPECT_EQ(ids_of(prompts), (std::vector<std::string>{"1", "81", "last"}));
  EXPECT_EQ(prompts[0].place, path + " line 1");
  EXPECT_EQ(prompts[1].place, path + " line 3 (id 81)");
  EXPECT_EQ(prompts[2].place, path + " line 4 (id last)");
}

}  // namespace
}  // namespace forerun
