#include "cost/known_costs.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

const CostKey kKey{.key = "key", .machine = "here", .n_bytes = 1000};

Calibration some_calibration() {
  return {.curve = CostCurve({{.n_rows = 1, .seconds = 0.0051, .seconds_per_token = 1.7e-6},
                              {.n_rows = 8, .seconds = 0.0077, .seconds_per_token = 8.5e-6}}),
          .blocks = {.attention = 1e-4, .mlp = 2e-4, .rest = 3e-4}};
}

TEST(KnownCosts, KeepsCurvesInFiles) {
  const test::TempDir folder;
  const auto place = folder.file("new") / "folder";
  EXPECT_FALSE(load_costs(place, kKey));
  save_costs(place, kKey, some_calibration());
  const auto loaded = load_costs(place, kKey);
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->curve.points().size(), 2u);
  EXPECT_EQ(loaded->curve.points()[1].n_rows, 8);
  EXPECT_EQ(loaded->curve.points()[1].seconds, 0.0077);
  EXPECT_EQ(loaded->curve.points()[0].seconds_per_token, 1.7e-6);
  EXPECT_EQ(loaded->blocks.attention, 1e-4);
  EXPECT_EQ(loaded->blocks.mlp, 2e-4);
  EXPECT_EQ(loaded->blocks.rest, 3e-4);
  EXPECT_FALSE(load_costs(place, {.key = "another", .machine = "m", .n_bytes = 1}));
}

TEST(KnownCosts, ForgetsWhatIsDamaged) {
  const test::TempDir folder;
  for (const char* text :
       {"", "{", "[]", "{\"version\":6}", "{\"version\":6,\"points\":[]}",
        "{\"version\":6,\"points\":7}", "{\"version\":6,\"points\":[[1,2]]}",
        "{\"version\":6,\"points\":[[\"1\",2,3]]}", "{\"version\":6,\"points\":[[1,0,0]]}",
        "{\"version\":6,\"points\":[[2,1,0],[1,1,0]]}", "{\"version\":6,\"points\":[[1,1,0]]}",
        "{\"version\":6,\"points\":[[1,1,0]],\"blocks\":{\"attention\":1,\"mlp\":2,\"rest\":\"x\"}}",
        "{\"version\":6,\"points\":[[1,1,0]],\"blocks\":{\"attention\":1,\"mlp\":2,\"rest\":3}}",
        "{\"version\":6,\"machine\":7,\"weight_bytes\":9,\"points\":[[1,1,0]],\"blocks\":{"
        "\"attention\":1,\"mlp\":2,\"rest\":3}}",
        "{\"version\":6,\"points\":[[1,1,0]],\"blocks\":{\"attention\":-1,\"mlp\":2,\"rest\":3}}",
        "{\"version\":999,\"points\":[[1,1,0]]}", "{\"version\":\"x\",\"points\":[[1,1,0]]}"}) {
    std::ofstream(folder.file("key.json")) << text;
    EXPECT_FALSE(load_costs(folder.file("."), kKey)) << text;
  }
}

TEST(KnownCosts, SaysWhenItCannotWrite) {
  const test::TempDir folder;
  std::ofstream(folder.file("taken")) << "a file";
  EXPECT_THROW(save_costs(folder.file("taken"), kKey, some_calibration()), Error);
}

TEST(KnownCosts, AnotherModelOfThisMachineTellsHowFastItIs) {
  const test::TempDir folder;
  EXPECT_FALSE(load_similar_curve(folder.file("nowhere"), kKey));
  const auto keep = [&](const char* key, const char* machine, uint64_t n_bytes, double seconds) {
    save_costs(folder.file("."), {.key = key, .machine = machine, .n_bytes = n_bytes},
               {.curve = CostCurve({{.n_rows = 1, .seconds = seconds, .seconds_per_token = 0.25},
                                    {.n_rows = 4, .seconds = 2 * seconds, .seconds_per_token = 0.5}}),
                .blocks = {.attention = 1, .mlp = 2, .rest = 4}});
  };
  keep("elsewhere", "there", 1000, 7);
  EXPECT_FALSE(load_similar_curve(folder.file("."), kKey)) << "another machine tells nothing";
  keep("large", "here", 100'000, 11);
  keep("near", "here", 2000, 3);
  std::ofstream(folder.file("damaged.json")) << "{";
  const auto similar = load_similar_curve(folder.file("."), kKey);
  ASSERT_TRUE(similar);
  EXPECT_DOUBLE_EQ(similar->rows(1), 1.5) << "half as many bytes as the nearest one's";
  EXPECT_DOUBLE_EQ(similar->rows(4), 3);
  EXPECT_DOUBLE_EQ(similar->attention(4, 1), 0.25);
}

}  // namespace
}  // namespace forerun
