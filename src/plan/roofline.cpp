#include "plan/roofline.h"

#include <algorithm>
#include <span>

namespace forerun {
namespace {

constexpr int kRatios[] = {16, 32, 48, 64, 96, 128, 160, 192, 256, 384};
constexpr int kSizes[] = {2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32};
constexpr int kMaxRatio = 192;
constexpr int kMaxRatioOfCpu = 64;
constexpr int kLargePass = 64;

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

int roofline_nodes(const PassCosts& costs, bool has_accelerator, int n_requests) {
  const double per_row = costs.rows(kLargePass) / kLargePass;
  const int measured = static_cast<int>(costs.rows(1) / per_row);
  const int ratio =
      floored(std::clamp(measured, 1, has_accelerator ? kMaxRatio : kMaxRatioOfCpu), kRatios);
  const int size = std::min(ratio / n_requests, largest_tree(n_requests));
  return std::max(0, floored(size, kSizes) - 1);
}

}  // namespace forerun
