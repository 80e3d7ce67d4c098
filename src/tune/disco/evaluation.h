// How good a classifier is on drafted tokens whose fate is known.
#pragma once

#include <array>
#include <span>

#include "stopping/disco.h"
#include "tune/disco/examples.h"

namespace forerun {

// Of tokens that it says will be taken. A chance counts as a part of a token.
struct DiscoScore {
  double precision = 0;  // the share of them that is
  double recall = 0;     // the share of all that are taken
  double f1 = 0;
};
DiscoScore score_disco(const DiscoNetwork& network, std::span<const DiscoExample> examples,
                       double threshold);

// Tokens that it gives about the same chance.
struct CalibrationBin {
  int64_t n_tokens = 0;
  double said = 0;   // the mean chance
  double taken = 0;  // the share that was taken
};
struct DiscoCalibration {
  std::array<CalibrationBin, 10> bins;  // by tenths of the chance
  double error = 0;                     // |said - taken|, the mean over tokens
  double brier = 0;                     // squared difference of a chance and what became of it
};
DiscoCalibration calibration_of(const DiscoNetwork& network, std::span<const DiscoExample> examples);

}  // namespace forerun
