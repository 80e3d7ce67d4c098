#include "cost/cost_curve.h"

#include <algorithm>

#include "core/check.h"

namespace forerun {

double BlockCosts::of(const LayerSet& layers) const {
  double seconds = rest;
  for (int layer = 0; layer < layers.n_layers(); ++layer) {
    seconds += layers.runs(attention_block(layer)) ? attention : 0;
    seconds += layers.runs(mlp_block(layer)) ? mlp : 0;
  }
  return seconds;
}

CostCurve::CostCurve(std::vector<CostPoint> points) : points_(std::move(points)) {
  CHECK(!points_.empty() && points_.front().n_rows > 0);
  for (size_t i = 1; i < points_.size(); ++i) CHECK(points_[i - 1].n_rows < points_[i].n_rows);
}

double CostCurve::at(double n_rows, double CostPoint::*value) const {
  const auto upper = std::ranges::lower_bound(points_, n_rows, {}, &CostPoint::n_rows);
  if (upper == points_.begin()) return points_.front().*value;
  const CostPoint& low = *(upper - 1);
  if (upper == points_.end()) return low.*value * n_rows / low.n_rows;
  const double share = (n_rows - low.n_rows) / (upper->n_rows - low.n_rows);
  return low.*value + share * ((*upper).*value - low.*value);
}

}  // namespace forerun
