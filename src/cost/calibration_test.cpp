#include "cost/calibration.h"

#include <gtest/gtest.h>

#include "support/gguf_builder.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

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

TEST(Calibration, MeasuresAModelAndLeavesTheCacheAsItWas) {
  const test::TempDir folder;
  test::tiny_model({.n_vocab = 100}).write(folder.file("model.gguf"));
  const auto model = Model::load(GgufFile::open(folder.file("model.gguf")),
                                 Device::open({.name = "cpu", .n_threads = 1, .pin_threads = false}));
  Executor executor(model, {.kv = {.n_cells = 512}, .max_rows = 16});
  double share = 0;
  const Calibration calibration = calibrate(executor, [&](double s) {
    EXPECT_GE(s, share);
    share = s;
  });
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
}

}  // namespace
}  // namespace forerun
