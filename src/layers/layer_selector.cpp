#include "layers/layer_selector.h"

#include <algorithm>
#include <cmath>

namespace forerun {

class FixedLayers::OfRequest final : public RequestLayers {
 public:
  explicit OfRequest(FixedLayers& fixed) : fixed_(fixed) {}

  std::optional<DraftPlan> plan() override {
    if (!fixed_.layers_) return std::nullopt;
    DraftPlan plan{.layers = *fixed_.layers_};
    if (fixed_.threshold_) plan.threshold = fixed_.threshold_->value();
    return plan;
  }
  void observe(const ChainOutcome& outcome) override {
    if (fixed_.threshold_) fixed_.threshold_->observe(outcome);
  }

 private:
  FixedLayers& fixed_;
};

std::unique_ptr<RequestLayers> FixedLayers::begin(const RequestView& /*request*/) {
  return std::make_unique<OfRequest>(*this);
}

LayerSet uniform_layers(int n_layers, double skipped_share) {
  LayerSet layers = LayerSet::full(n_layers);
  const int n_free = 2 * std::max(0, n_layers - 2);  // blocks that may go
  const int n_skipped = std::min(n_free, static_cast<int>(std::lround(2 * n_layers * skipped_share)));
  // The middle of each of n_skipped equal parts.
  for (int i = 0; i < n_skipped; ++i) {
    layers.set(BlockId{2 + (2 * i + 1) * n_free / (2 * n_skipped)}, false);
  }
  return layers;
}

}  // namespace forerun
