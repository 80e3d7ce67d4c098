// Layers by what the prompt is about: KNN-SSD.
//
// Song et al., "KNN-SSD: Enabling Dynamic Self-Speculative Decoding via Nearest Neighbor Layer
// Set Optimization", 2025. Domains have been made beforehand (layers/domain_file.h): each has a
// set of layers that was searched on its texts, and anchors, the states of typical prompts. A
// prompt drafts with the layers of the anchor that its own state is nearest to. The state comes
// with the pass that reads the prompt, so choosing costs nothing.
//
// Where no anchor is near, the published code still takes the nearest (`fallback` "nearest"),
// and an evenly spread set ("uniform") for a domain that has none. By default there is no draft
// then: how well any set would do on such text is not known, and plain decoding is never slower
// than itself.
#pragma once

#include <string>

#include "core/option_visitor.h"
#include "layers/domain_file.h"
#include "layers/layer_selector.h"

namespace forerun {

struct KnnOptions {
  std::string domains = {};       // the file
  std::string fallback = "none";  // or "nearest", "uniform"

  void describe(OptionVisitor& visitor);
};

class KnnSelector final : public LayerSelector {
 public:
  // Reads the file, which is for this model. Throws Error.
  KnnSelector(const KnnOptions& options, const SelectorResources& resources)
      : domains_(DomainFile::load(options.domains, &resources.executor.model())),
        fallback_(options.fallback) {}

  NextPlan begin(const RequestView& request) override;
  bool wants_prompt_state() const override { return true; }

  // The layers for a prompt with this state; nullopt: better not to draft.
  std::optional<LayerSet> layers_for(const PromptState& prompt) const;

 private:
  DomainFile domains_;
  std::string fallback_;
};

}  // namespace forerun
