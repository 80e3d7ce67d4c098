// Several drafters of one request: all of them see it and its text. Who drafts, subclasses decide.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <vector>

#include "draft/drafter.h"

namespace forerun {

using DraftMethods = std::vector<std::unique_ptr<DraftMethod>>;

inline bool any_wants_prompt_state(const DraftMethods& methods) {
  return std::ranges::any_of(methods, [](const auto& method) { return method->wants_prompt_state(); });
}

class DrafterGroup : public Drafter {
 public:
  void attach(const RequestView& request) override {
    for (const auto& drafter : drafters_) drafter->attach(request);
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

  // One of each method, in their order.
  size_t n_drafters() const { return drafters_.size(); }
  Drafter& drafter(size_t i) const { return *drafters_[i]; }

 protected:
  DrafterGroup(const DraftMethods& methods, std::span<const TokenId> prompt) {
    for (const auto& method : methods) drafters_.push_back(method->begin(prompt));
  }

 private:
  std::vector<std::unique_ptr<Drafter>> drafters_;
};

}  // namespace forerun
