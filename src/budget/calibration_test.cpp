#include "budget/calibration.h"

#include <gtest/gtest.h>

#include <fstream>

#include "core/error.h"
#include "support/gguf_builder.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

Calibration some_calibration() {
  return {.curve = CostCurve({{.n_rows = 1, .seconds = 0.0051, .seconds_per_token = 1.7e-6},
                              {.n_rows = 8, .seconds = 0.0077, .seconds_per_token = 8.5e-6}}),
          .blocks = {.attention = 1e-4, .mlp = 2e-4, .rest = 3e-4}};
}

TEST(Calibration, KeepsCurvesInFiles) {
  const test::TempDir folder;
  const auto place = folder.file("new") / "folder";
  EXPECT_FALSE(load_calibration(place, "key"));
  save_calibration(place, "key", some_calibration());
  const auto loaded = load_calibration(place, "key");
  ASSERT_TRUE(loaded);
  ASSERT_EQ(loaded->curve.points().size(), 2u);
  EXPECT_EQ(loaded->curve.points()[1].n_rows, 8);
  EXPECT_EQ(loaded->curve.points()[1].seconds, 0.0077);
  EXPECT_EQ(loaded->curve.points()[0].seconds_per_token, 1.7e-6);
  EXPECT_EQ(loaded->blocks.attention, 1e-4);
  EXPECT_EQ(loaded->blocks.mlp, 2e-4);
  EXPECT_EQ(loaded->blocks.rest, 3e-4);
  EXPECT_FALSE(load_calibration(place, "another"));
}

TEST(Calibration, MeasuresAgainWhatIsDamaged) {
  const test::TempDir folder;
  for (const char* text :
       {"", "{", "[]", "{\"version\":4}", "{\"version\":4,\"points\":[]}",
        "{\"version\":4,\"points\":7}", "{\"version\":4,\"points\":[[1,2]]}",
        "{\"version\":4,\"points\":[[\"1\",2,3]]}", "{\"version\":4,\"points\":[[1,0,0]]}",
        "{\"version\":4,\"points\":[[2,1,0],[1,1,0]]}", "{\"version\":4,\"points\":[[1,1,0]]}",
        "{\"version\":4,\"points\":[[1,1,0]],\"blocks\":{\"attention\":1,\"mlp\":2,\"rest\":\"x\"}}",
        "{\"version\":4,\"points\":[[1,1,0]],\"blocks\":{\"attention\":-1,\"mlp\":2,\"rest\":3}}",
        "{\"version\":999,\"points\":[[1,1,0]]}", "{\"version\":\"x\",\"points\":[[1,1,0]]}"}) {
    std::ofstream(folder.file("key.json")) << text;
    EXPECT_FALSE(load_calibration(folder.file("."), "key")) << text;
  }
}

TEST(Calibration, KeepsNoOutlier) {
  const std::vector<int> n_rows{1, 2, 4, 8};
  const auto expect = [&](std::vector<double> measured, std::vector<double> kept) {
    EXPECT_EQ(without_outliers(n_rows, measured), kept);
  };
  expect({5, 6, 7, 9}, {5, 6, 7, 9});
  expect({53, 6, 7, 9}, {6, 6, 7, 9});
  expect({5, 53, 7, 9}, {5, 7, 7, 9});
  expect({5, 6, 53, 9}, {5, 6, 9, 9});
  expect({5, 6, 7, 53}, {5, 6, 7, 14});  // two passes of 4
  expect({5, 53, 53, 53}, {5, 10, 20, 40});
}

TEST(Calibration, SaysWhenItCannotWrite) {
  const test::TempDir folder;
  std::ofstream(folder.file("taken")) << "a file";
  EXPECT_THROW(save_calibration(folder.file("taken"), "key", some_calibration()), Error);
}

TEST(Calibration, MeasuresAModelAndLeavesTheCacheAsItWas) {
  const test::TempDir folder;
  test::tiny_model({.n_vocab = 100}).write(folder.file("model.gguf"));
  const auto model = Model::load(GgufFile::open(folder.file("model.gguf")),
                                 Device::open({.name = "cpu", .n_threads = 1, .pin_threads = false}));
  Executor executor(model, {.kv = {.n_cells = 512}, .max_rows = 64});
  double share = 0;
  const Calibration calibration = calibrate(executor, {.max_rows = 16, .progress = [&](double s) {
                                                         EXPECT_GE(s, share);
                                                         share = s;
                                                       }});
  const CostCurve& curve = calibration.curve;
  EXPECT_EQ(share, 1.0);
  EXPECT_EQ(executor.cells().n_free(), 512);
  EXPECT_EQ(curve.points().front().n_rows, 1);
  EXPECT_EQ(curve.points().back().n_rows, 16);
  for (const CostPoint& point : curve.points()) {
    EXPECT_GT(point.seconds, 0);
    EXPECT_GE(point.seconds_per_token, 0);
  }
  EXPECT_GE(calibration.blocks.attention, 0);
  EXPECT_GE(calibration.blocks.mlp, 0);
  EXPECT_GT(calibration.blocks.rest, 0);
  EXPECT_EQ(calibration_key(executor), calibration_key(executor));
}

}  // namespace
}  // namespace forerun
