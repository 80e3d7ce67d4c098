#include "draft/rivals.h"

#include <algorithm>

namespace forerun {

class RivalsMethod::RivalsDrafter final : public Drafter {
 public:
  RivalsDrafter(RivalsMethod& method, std::span<const TokenId> prompt)
      : trees(method.methods_.size()), method_(method) {
    for (const auto& rival : method.methods_) drafters.push_back(rival->begin(prompt));
  }

  void attach(const RequestView& request) override {
    for (const auto& drafter : drafters) drafter->attach(request);
  }
  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const DraftJob job{.drafter = this, .limits = limits, .tree = &tree};
    method_.draft({&job, 1});
  }
  void observe(const DraftTree& tree, const TargetTokens& target) override {
    for (const auto& drafter : drafters) drafter->observe(tree, target);
  }
  void append(std::span<const TokenId> tokens) override {
    for (const auto& drafter : drafters) drafter->append(tokens);
  }
  void finish() override {
    for (const auto& drafter : drafters) drafter->finish();
  }

  std::vector<std::unique_ptr<Drafter>> drafters;
  std::vector<DraftTree> trees;  // of each

 private:
  RivalsMethod& method_;
};

RivalsMethod::RivalsMethod(std::vector<std::unique_ptr<DraftMethod>> methods)
    : methods_(std::move(methods)) {}

RivalsMethod::~RivalsMethod() = default;

std::unique_ptr<Drafter> RivalsMethod::begin(std::span<const TokenId> prompt) {
  return std::make_unique<RivalsDrafter>(*this, prompt);
}

bool RivalsMethod::wants_prompt_state() const {
  return std::ranges::any_of(methods_, [](const auto& method) { return method->wants_prompt_state(); });
}

void RivalsMethod::draft(std::span<const DraftJob> jobs) {
  const size_t n_methods = methods_.size();
  rates_.clear();
  for (const DraftJob& job : jobs) {
    const auto& drafter = static_cast<RivalsDrafter&>(*job.drafter);
    for (const auto& rival : drafter.drafters) rates_.push_back(rival->expected_rate());
  }
  for (size_t i = 0; i < n_methods; ++i) {
    jobs_.clear();
    for (size_t j = 0; j < jobs.size(); ++j) {
      auto& drafter = static_cast<RivalsDrafter&>(*jobs[j].drafter);
      drafter.trees[i].clear();
      DraftJob job = jobs[j];
      job.drafter = drafter.drafters[i].get();
      job.tree = &drafter.trees[i];
      for (size_t other = 0; other < n_methods; ++other) {
        if (other != i) job.rival_rate = std::max(job.rival_rate, rates_[j * n_methods + other]);
      }
      jobs_.push_back(job);
    }
    methods_[i]->draft(jobs_);
  }
  // Mostly one of them drafted. Rules that compare distributions can take the tokens of one only.
  for (const DraftJob& job : jobs) {
    auto& trees = static_cast<RivalsDrafter&>(*job.drafter).trees;
    const auto longest = std::ranges::max_element(trees, {}, &DraftTree::size);
    *job.tree = *longest;
    if (longest->has_distributions()) continue;
    for (const DraftTree& tree : trees) {
      if (&tree == &*longest || job.tree->size() + tree.size() > job.limits.max_nodes) continue;
      job.tree->lay_over(tree, 1);
    }
  }
}

}  // namespace forerun
