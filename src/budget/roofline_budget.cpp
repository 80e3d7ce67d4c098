#include "budget/roofline_budget.h"

#include <algorithm>
#include <span>

namespace forerun {
namespace {

constexpr int kRatios[] = {16, 32, 48, 64, 96, 128, 160, 192, 256, 384};
constexpr int kSizes[] = {2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32};
constexpr int kMaxRatio = 192;
constexpr int kMaxRatioOfCpu = 64;

// The largest of `steps` that is not above `value`; `value` if all are.
int floored(int value, std::span<const int> steps) {
  const auto above = std::upper_bound(steps.begin(), steps.end(), value);
  return above == steps.begin() ? value : *(above - 1);
}

int largest_tree(int n_requests) {
  if (n_requests == 1) return 32;
  if (n_requests <= 3) return 64 / n_requests;
  if (n_requests <= 6) return 96 / n_requests;
  return 512 / n_requests;
}

}  // namespace

RooflineBudget::RooflineBudget(const CostCurve& curve, bool has_accelerator) {
  const CostPoint& largest = curve.points().back();
  const double per_row = largest.seconds / largest.n_rows;
  const int measured = static_cast<int>(curve.rows(1) / per_row);
  ratio_ = floored(std::clamp(measured, 1, has_accelerator ? kMaxRatio : kMaxRatioOfCpu), kRatios);
}

int RooflineBudget::n_nodes(int n_requests) const {
  const int size = std::min(ratio_ / n_requests, largest_tree(n_requests));
  return std::max(0, floored(size, kSizes) - 1);
}

}  // namespace forerun
