// Layers that were searched beforehand: Self-SD.
//
// Zhang et al., "Draft & Verify: Lossless Large Language Model Acceleration via Self-Speculative
// Decoding", ACL 2024. The set comes from a file that `forerun layers search` writes
// (layer_file.h); one that leaves out nothing means that drafting does not pay.
//
// Drafts end behind a token that is less probable than a threshold, which follows what becomes
// of them. As published, but that it stays between 0 and 1. It moves by 0.001 a draft, so it stays
// with the engine from request to request.
#pragma once

#include <memory>
#include <string>

#include "core/option_visitor.h"
#include "layers/layer_selector.h"
#include "model/model.h"

namespace forerun {

// Draft & Verify's: up while fewer than nine in ten drafted tokens are taken, down while more
// are and drafts could be longer.
class AdaptiveThreshold {
 public:
  explicit AdaptiveThreshold(double first) : value_(first) {}

  double value() const { return value_; }
  void observe(const ChainOutcome& outcome);

 private:
  double value_;
  double accepted_ = 0;  // share of drafted tokens, the latest drafts above all
};

struct SelfSdOptions {
  std::string layers = {};  // the file
  bool adapt = true;        // the threshold

  void describe(OptionVisitor& visitor);
};

class SelfSdSelector final : public LayerSelector {
 public:
  // Reads the file, which is for this model. `threshold` is the drafter's, from which it
  // adapts. Throws Error.
  SelfSdSelector(const SelfSdOptions& options, const Model& model, double threshold);

  std::unique_ptr<LayerChooser> begin(const RequestView& request) override;

 private:
  class Chooser;

  LayerSet layers_;
  bool adapts_;
  AdaptiveThreshold threshold_;
};

}  // namespace forerun
