#include "plan/learnt_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "support/temp_dir.h"

namespace forerun {
namespace {

TEST(LearntFile, KeepsNumbers) {
  const test::TempDir folder;
  const auto place = folder.file("new") / "folder";
  EXPECT_TRUE(load_learnt(place, 7).acceptance.empty());
  const Learnt learnt{.acceptance = {0.1f, -2.5f, 1e6f}, .models = {{}, {1, 0, 1}}};
  save_learnt(place, 7, learnt);
  EXPECT_EQ(load_learnt(place, 7).acceptance, learnt.acceptance);
  EXPECT_EQ(load_learnt(place, 7).models, learnt.models);
  EXPECT_TRUE(load_learnt(place, 8).acceptance.empty());
}

TEST(LearntFile, ForgetsWhatIsDamaged) {
  const test::TempDir folder;
  const auto path = folder.file("0000000000000007.json");
  const auto reads = [&](const std::string& text) {
    std::ofstream(path) << text;
    return !load_learnt(folder.file("."), 7).acceptance.empty();
  };
  save_learnt(folder.file("."), 7, {.acceptance = {1}, .models = {{1}}});
  std::ifstream stream(path);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  ASSERT_TRUE(reads(whole));
  const auto with = [&](const char* part, const char* other) {
    std::string text = whole;
    return text.replace(text.find(part), std::string_view(part).size(), other);
  };
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("{\"version\":1}"),
        std::string("{\"version\":1,\"acceptance\":[1],\"models\":[]}"),
        with("version\":", "version\":9"), with(",\"models\":[[1.0]]", ""), with("[[1.0]]", "[1]"),
        with("[1.0]", "[1,\"x\"]")}) {
    EXPECT_FALSE(reads(text)) << text;
  }
}

}  // namespace
}  // namespace forerun
