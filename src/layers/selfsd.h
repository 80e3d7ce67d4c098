// Layers that were searched beforehand: Self-SD.
//
// Zhang et al., "Draft & Verify: Lossless Large Language Model Acceleration via Self-Speculative
// Decoding", ACL 2024. The set comes from a file that `forerun layers search` writes
// (layer_file.h); one that leaves out nothing means that drafting does not pay.
//
// Drafts end behind a token that is less probable than a threshold, which follows what becomes
// of them (stopping/thresholds.h).
#pragma once

#include <memory>
#include <string>

#include "core/option_visitor.h"
#include "layers/layer_selector.h"

namespace forerun {

struct SelfSdOptions {
  std::string layers = {};  // the file
  bool adapt = true;        // the threshold

  void describe(OptionVisitor& visitor);
};

// Reads the file, which is for this model. Adapts from the drafter's threshold. Throws Error.
std::unique_ptr<LayerSelector> make_selfsd(const SelfSdOptions& options,
                                           const SelectorResources& resources);

}  // namespace forerun
