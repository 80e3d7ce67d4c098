#include "tune/disco/evaluation.h"

#include <gtest/gtest.h>

namespace forerun {
namespace {

// Says 1/2 where the first feature is 0, and about 0.95 where it is 1.
DiscoNetwork two_chances() {
  DiscoNetwork network;
  network.scale.fill(1);
  network.hidden_weight.assign(kDiscoFeatures, 0);
  network.hidden_weight[0] = 3;
  network.hidden_bias = {0};
  network.output_weight = {1};
  return network;
}

DiscoExample example(float feature, float taken) {
  DiscoExample example{.taken = taken};
  example.features[0] = feature;
  return example;
}

TEST(DiscoScore, CountsWhatItSaysAndWhatIs) {
  const std::vector<DiscoExample> examples{example(1, 1), example(1, 1), example(1, 0), example(0, 1),
                                           example(0, 0)};
  const DiscoScore score = score_disco(two_chances(), examples, 0.7);
  EXPECT_DOUBLE_EQ(score.precision, 2.0 / 3);
  EXPECT_DOUBLE_EQ(score.recall, 2.0 / 3);
  EXPECT_DOUBLE_EQ(score.f1, 2.0 / 3);
  EXPECT_DOUBLE_EQ(score_disco(two_chances(), examples, 0.2).recall, 1);
  EXPECT_DOUBLE_EQ(score_disco(two_chances(), examples, 0.99).f1, 0);
}

TEST(DiscoScore, ChancesArePartsOfTokens) {
  const std::vector<DiscoExample> examples{example(1, 0.75f), example(0, 0.25f)};
  const DiscoScore score = score_disco(two_chances(), examples, 0.7);
  EXPECT_DOUBLE_EQ(score.precision, 0.75);
  EXPECT_DOUBLE_EQ(score.recall, 0.75);
}

TEST(DiscoCalibration, ComparesWhatItSaysWithWhatIs) {
  std::vector<DiscoExample> examples;
  for (int i = 0; i < 8; ++i) examples.push_back(example(0, i < 2 ? 1.0f : 0.0f));
  const DiscoCalibration calibration = calibration_of(two_chances(), examples);
  EXPECT_EQ(calibration.bins[5].n_tokens, 8);
  EXPECT_DOUBLE_EQ(calibration.bins[5].said, 0.5);
  EXPECT_DOUBLE_EQ(calibration.bins[5].taken, 0.25);
  EXPECT_DOUBLE_EQ(calibration.error, 0.25);
  EXPECT_DOUBLE_EQ(calibration.brier, 0.25);
}

}  // namespace
}  // namespace forerun
