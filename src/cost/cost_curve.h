// How long a pass of the model takes: what verifying a draft costs.
//
// The time of a pass is that of its rows, whatever they are, and that of attention, which
// grows with the text each request has:
//
//   seconds = rows(n) + sum over requests of attention(n_i) * context_i
//
// Both are tables measured on this machine (calibration.h), not formulas: with some
// kernels 4 rows cost less than 3. Between measured numbers of rows it interpolates.
#pragma once

#include <vector>

#include "model/layer_set.h"

namespace forerun {

struct CostPoint {
  int n_rows;
  double seconds = 0;            // of a pass with next to no context
  double seconds_per_token = 0;  // more for each token of context
};

// What one row of a pass without context takes, part by part.
struct BlockCosts {
  double attention = 0;  // seconds of one block
  double mlp = 0;
  double rest = 0;  // embedding, head, and what a pass takes whatever runs in it

  double of(const LayerSet& layers) const;
  BlockCosts scaled(double factor) const { return {attention * factor, mlp * factor, rest * factor}; }
};

// Numbers of rows that a curve is known at: also behind those that kernels compute at once, where costs
// have their steps.
inline constexpr int kRowCounts[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 12,
                                     16, 17, 20, 24, 32, 33, 48, 64, 96, 128};

class CostCurve {
 public:
  // At least one point, in ascending order of rows.
  explicit CostCurve(std::vector<CostPoint> points);

  const std::vector<CostPoint>& points() const { return points_; }

  // Of a pass of `n_rows` rows, all requests together, without context.
  double rows(int n_rows) const { return at(n_rows, &CostPoint::seconds); }
  // More for one request with `n_rows` rows of these and `n_context` tokens; or for several that have so
  // many each on average, and these tokens together.
  double attention(double n_rows, int n_context) const {
    return at(n_rows, &CostPoint::seconds_per_token) * n_context;
  }

 private:
  // Interpolates `value`; past the last point it grows as fast as the rows.
  double at(double n_rows, double CostPoint::*value) const;

  std::vector<CostPoint> points_;
};

}  // namespace forerun
