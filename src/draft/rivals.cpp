#include "draft/rivals.h"

#include <algorithm>

namespace forerun {

class RivalsMethod::RivalsDrafter final : public DrafterGroup {
 public:
  RivalsDrafter(RivalsMethod& method, std::span<const TokenId> prompt)
      : DrafterGroup(method.methods_, prompt), trees(method.methods_.size()), method_(method) {}

  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const DraftJob job{.drafter = this, .limits = limits, .tree = &tree};
    method_.draft({&job, 1});
  }

  std::vector<DraftTree> trees;  // of each

 private:
  RivalsMethod& method_;
};

RivalsMethod::RivalsMethod(DraftMethods methods) : methods_(std::move(methods)) {}

RivalsMethod::~RivalsMethod() = default;

std::unique_ptr<Drafter> RivalsMethod::begin(std::span<const TokenId> prompt) {
  return std::make_unique<RivalsDrafter>(*this, prompt);
}

void RivalsMethod::draft(std::span<const DraftJob> jobs) {
  const size_t n_methods = methods_.size();
  rates_.clear();
  for (const DraftJob& job : jobs) {
    const auto& drafter = static_cast<RivalsDrafter&>(*job.drafter);
    for (size_t i = 0; i < n_methods; ++i)
      rates_.push_back(drafter.drafter(i).expected_rate(job.n_requests));
  }
  for (size_t i = 0; i < n_methods; ++i) {
    jobs_.clear();
    for (size_t j = 0; j < jobs.size(); ++j) {
      auto& drafter = static_cast<RivalsDrafter&>(*jobs[j].drafter);
      drafter.trees[i].clear();
      DraftJob job = jobs[j];
      job.drafter = &drafter.drafter(i);
      job.tree = &drafter.trees[i];
      // Who promises the most stands back for none of the others.
      const std::span rates = std::span(rates_).subspan(j * n_methods, n_methods);
      const auto best = static_cast<size_t>(std::ranges::max_element(rates) - rates.begin());
      if (i != best) job.rival_rate = std::max(job.rival_rate, rates[best]);
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
