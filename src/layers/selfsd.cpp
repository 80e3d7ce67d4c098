#include "layers/selfsd.h"

#include "layers/layer_file.h"

namespace forerun {
namespace {

LayerSet load_layers(const SelfSdOptions& options, const Model& model) {
  return LayerFile::load(options.layers, LayerModel{.fingerprint = model.fingerprint(),
                                                    .n_layers = model.config().n_layers})
      .layers;
}

}  // namespace

void SelfSdOptions::describe(OptionVisitor& visitor) {
  visitor.visit({.name = "layers",
                 .help = "File of layers ('forerun layers search' makes one)",
                 .if_empty = "selfsd needs a set of layers: 'forerun layers search -o FILE' makes one "
                             "for --selfsd-layers FILE"},
                layers, {});
  visitor.visit({.name = "adapt", .help = "Let the threshold follow what becomes of drafts"}, adapt);
}

class SelfSdSelector::Chooser final : public RequestLayers {
 public:
  explicit Chooser(SelfSdSelector& selector) : selector_(selector) {}

  std::optional<DraftPlan> plan() override {
    if (selector_.layers_.is_full()) return std::nullopt;
    DraftPlan plan{.layers = selector_.layers_};
    if (selector_.adapts_) plan.threshold = selector_.threshold_.value();
    return plan;
  }
  void observe(const ChainOutcome& outcome) override { selector_.threshold_.observe(outcome); }

 private:
  SelfSdSelector& selector_;
};

SelfSdSelector::SelfSdSelector(const SelfSdOptions& options, const Model& model, double threshold)
    : layers_(load_layers(options, model)), adapts_(options.adapt), threshold_(threshold) {}

std::unique_ptr<RequestLayers> SelfSdSelector::begin(const RequestView& /*request*/) {
  return std::make_unique<Chooser>(*this);
}

}  // namespace forerun
