// Drafts from texts where they are likely enough, and from the model itself elsewhere.
//
// Texts are searched first, which costs next to nothing. How likely what they give is, is
// learnt (budget/acceptance_model.h), and so the tokens per second that come of it are known;
// the other method, whose drafts take passes, is told (DraftJob::rival_rate) and drafts only
// where it expects more. It is told the texts' proposals too (DraftJob::hint): where its own
// draft goes the same way, it reads several of its tokens in one pass. Then both trees are laid over
// each other: what the model says of the text's proposals makes them likelier or not, and whoever prunes
// the tree knows.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "budget/acceptance_model.h"
#include "budget/calibration.h"
#include "draft/drafter_group.h"

namespace forerun {

class HybridMethod final : public DraftMethod {
 public:
  // `texts` uses at most kMaxProposers - 1 bits of DraftNode::proposers. The costs outlive it.
  HybridMethod(std::unique_ptr<DraftMethod> texts, std::unique_ptr<DraftMethod> model,
               const Calibration& costs);
  ~HybridMethod() override;

  std::unique_ptr<Drafter> begin(std::span<const TokenId> prompt) override;
  void draft(std::span<const DraftJob> jobs) override;
  bool wants_prompt_state() const override { return any_wants_prompt_state(methods_); }

 private:
  class HybridDrafter;

  double expected_rate(std::span<const double> chances, int n_context, int n_requests);

  DraftMethods methods_;  // the texts, the model
  const Calibration& costs_;
  AcceptanceModel acceptance_;

  // Reused from draft to draft.
  std::vector<DraftJob> jobs_;
  std::vector<double> sorted_;
};

}  // namespace forerun
