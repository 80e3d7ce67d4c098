#include "plan/learnt_file.h"

#include <gtest/gtest.h>

#include <fstream>

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
  save_learnt(folder.file("."), 7, {.acceptance = {1}});
  for (const char* text : {"", "{", "[]", "{\"version\":1}", "{\"version\":2,\"acceptance\":[1]}",
                           "{\"version\":1,\"acceptance\":[1],\"models\":[]}",
                           "{\"version\":2,\"acceptance\":[1],\"models\":[1]}",
                           "{\"version\":2,\"acceptance\":[1,\"x\"],\"models\":[]}"}) {
    std::ofstream(folder.file("0000000000000007.json")) << text;
    EXPECT_TRUE(load_learnt(folder.file("."), 7).acceptance.empty()) << text;
  }
}

}  // namespace
}  // namespace forerun
