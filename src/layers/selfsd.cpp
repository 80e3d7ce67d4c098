#include "layers/selfsd.h"

#include "layers/layer_file.h"

namespace forerun {

void SelfSdOptions::describe(OptionVisitor& visitor) {
  visitor.visit({.name = "layers",
                 .help = "File of layers ('forerun layers search' makes one)",
                 .if_empty = "selfsd needs a set of layers: 'forerun layers search -o FILE' makes one "
                             "for --selfsd-layers FILE"},
                layers, {});
  visitor.visit({"adapt", "Let the threshold follow what becomes of drafts"}, adapt);
}

std::unique_ptr<LayerSelector> make_selfsd(const SelfSdOptions& options,
                                           const SelectorResources& resources) {
  const Model& model = resources.executor.model();
  const LayerModel identity{.fingerprint = model.fingerprint(), .n_layers = model.config().n_layers};
  const LayerSet layers = LayerFile::load(options.layers, identity).layers;
  return std::make_unique<FixedLayers>(
      layers.is_full() ? std::nullopt : std::optional(layers),
      options.adapt ? std::optional(AdaptiveThreshold(resources.threshold)) : std::nullopt);
}

}  // namespace forerun
