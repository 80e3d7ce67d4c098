#include "draft/mixed.h"

#include <algorithm>

#include "core/check.h"

namespace forerun {
namespace {

class MixedDrafter final : public Drafter {
 public:
  explicit MixedDrafter(std::vector<std::unique_ptr<Drafter>> drafters)
      : drafters_(std::move(drafters)) {}

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const auto n = static_cast<int>(drafters_.size());
    for (int i = 0; i < n; ++i) {
      const int share = limits.max_nodes / n + (i < limits.max_nodes % n ? 1 : 0);
      if (share == 0) return;
      part_.clear();
      drafters_[static_cast<size_t>(i)]->draft({.max_nodes = share, .max_depth = limits.max_depth},
                                               part_);
      tree.lay_over(part_, static_cast<uint8_t>(1u << i));
    }
  }
  void observe(const DraftTree& tree, const TargetTokens& target) override {
    for (const auto& drafter : drafters_) drafter->observe(tree, target);
  }
  void append(std::span<const TokenId> tokens) override {
    for (const auto& drafter : drafters_) drafter->append(tokens);
  }
  void finish() override {
    for (const auto& drafter : drafters_) drafter->finish();
  }

 private:
  std::vector<std::unique_ptr<Drafter>> drafters_;
  DraftTree part_;
};

}  // namespace

MixedMethod::MixedMethod(std::vector<std::unique_ptr<DraftMethod>> methods)
    : methods_(std::move(methods)) {
  CHECK(!methods_.empty() && methods_.size() <= kMaxProposers);
}

std::unique_ptr<Drafter> MixedMethod::begin(std::span<const TokenId> prompt) {
  std::vector<std::unique_ptr<Drafter>> drafters;
  for (const auto& method : methods_) drafters.push_back(method->begin(prompt));
  return std::make_unique<MixedDrafter>(std::move(drafters));
}

bool MixedMethod::wants_prompt_state() const {
  return std::any_of(methods_.begin(), methods_.end(),
                     [](const auto& method) { return method->wants_prompt_state(); });
}

}  // namespace forerun
