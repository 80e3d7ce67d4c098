#include "draft/model/layer_skipping.h"

namespace forerun {
namespace {

class LayerSkippingRequest final : public RequestModelDrafter {
 public:
  LayerSkippingRequest(const RequestView& request, LayerSelector& selector, StoppingRule* stopping)
      : RequestModelDrafter(request, stopping), layers_(selector.begin(request)) {}

  std::optional<DraftPlan> plan() override { return layers_->plan(); }
  std::optional<ChainStart> start() override {
    return ChainStart{.sequence = request().sequence(), .unread = request().text().last(1)};
  }
  void finish() override { layers_->finish(); }

 private:
  void observe(const ChainOutcome& outcome) override { layers_->observe(outcome); }

  std::unique_ptr<RequestLayers> layers_;
};

}  // namespace

std::unique_ptr<RequestModelDrafter> LayerSkippingDrafter::begin(const RequestView& request) {
  return std::make_unique<LayerSkippingRequest>(request, *selector_, stopping());
}

std::vector<float> LayerSkippingDrafter::learnt() const {
  std::vector<float> runs;
  const auto layers = selector_->learnt();
  for (int block = 0; layers && block < layers->n_blocks(); ++block) {
    runs.push_back(layers->runs(BlockId{block}) ? 1.0f : 0.0f);
  }
  return runs;
}

void LayerSkippingDrafter::restore(std::span<const float> learnt) {
  if (learnt.empty() || learnt.size() % 2 != 0) return;
  LayerSet layers = LayerSet::full(static_cast<int>(learnt.size() / 2));
  for (size_t block = 0; block < learnt.size(); ++block) {
    layers.set(BlockId{static_cast<int>(block)}, learnt[block] != 0);
  }
  selector_->restore(layers);
}

}  // namespace forerun
