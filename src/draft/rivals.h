// Several models that may draft for a request: the one drafts that promises the most.
//
// The others are told what the best of them would bring (DraftJob::rival_rate), so that they stand
// back, or try a short draft where nothing is known of them yet. All of them
// are gated (layers/draft_gate.h).
//
// Not thread-safe.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "draft/drafter_group.h"

namespace forerun {

class RivalsMethod final : public DraftMethod {
 public:
  explicit RivalsMethod(DraftMethods methods);
  ~RivalsMethod() override;

  std::unique_ptr<Drafter> begin(std::span<const TokenId> prompt) override;
  void draft(std::span<const DraftJob> jobs) override;
  bool wants_prompt_state() const override { return any_wants_prompt_state(methods_); }

 private:
  class RivalsDrafter;

  DraftMethods methods_;
  // Reused from draft to draft.
  std::vector<DraftJob> jobs_;
  std::vector<double> rates_;  // jobs x methods
};

}  // namespace forerun
