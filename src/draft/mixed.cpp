#include "draft/mixed.h"

#include "core/check.h"

namespace forerun {
namespace {

class MixedDrafter final : public DrafterGroup {
 public:
  MixedDrafter(const DraftMethods& methods, std::span<const TokenId> prompt)
      : DrafterGroup(methods, prompt) {}

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const auto n = static_cast<int>(n_drafters());
    for (int i = 0; i < n; ++i) {
      const int share = limits.max_nodes / n + (i < limits.max_nodes % n ? 1 : 0);
      if (share == 0) return;
      part_.clear();
      drafter(static_cast<size_t>(i)).draft({.max_nodes = share, .max_depth = limits.max_depth}, part_);
      tree.lay_over(part_, static_cast<uint8_t>(1u << i));
    }
  }

 private:
  DraftTree part_;
};

}  // namespace

MixedMethod::MixedMethod(DraftMethods methods) : methods_(std::move(methods)) {
  CHECK(!methods_.empty() && methods_.size() <= kMaxProposers);
}

std::unique_ptr<Drafter> MixedMethod::begin(std::span<const TokenId> prompt) {
  return std::make_unique<MixedDrafter>(methods_, prompt);
}

}  // namespace forerun
