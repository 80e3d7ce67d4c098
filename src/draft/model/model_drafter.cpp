#include "draft/model/model_drafter.h"

#include <algorithm>

#include "model/scratch_guard.h"

namespace forerun {
namespace {

// Draws that have nothing to do with the target's.
Sampler independent(const Sampler& sampler) {
  SamplingOptions options = sampler.options();
  options.seed = sampler.seed() ^ 0x9e3779b97f4a7c15u;
  return Sampler(options, sampler.n_vocab());
}

ChainOutcome outcome_of(std::span<const TokenId> chain, std::span<const TokenId> tokens) {
  const size_t n = std::min(chain.size(), tokens.size());
  const auto differs =
      std::mismatch(chain.begin(), chain.begin() + static_cast<ptrdiff_t>(n), tokens.begin());
  const auto n_agreed = static_cast<size_t>(differs.first - chain.begin());
  return {.n_tested = static_cast<int>(std::min(n, n_agreed + 1)),
          .n_agreed = static_cast<int>(n_agreed),
          .n_drafted = static_cast<int>(chain.size())};
}

}  // namespace

RequestModelDrafter::RequestModelDrafter(const RequestView& request, StoppingRule* stopping)
    : request_(request), stopping_(stopping != nullptr ? stopping->begin() : nullptr) {
  if (!request.compares_distributions()) return;
  own_sampler_ = std::make_unique<Sampler>(independent(request.sampler()));
}

void RequestModelDrafter::append(std::span<const TokenId> tokens) {
  if (chain_.empty()) return;
  ChainOutcome outcome = outcome_of(chain_, tokens);
  outcome.is_longest = outcome.n_drafted >= max_tokens_;
  chain_.clear();
  if (stopping_ != nullptr) stopping_->observe(outcome);
  observe(outcome);
}

ModelDrafter::ModelDrafter(const ChainOptions& options, Executor& executor, PassCosts& costs,
                           std::unique_ptr<StoppingRule> stopping)
    : costs_(costs),
      stopping_(std::move(stopping)),
      grower_(options, executor, costs, stopping_.get()) {}

void ModelDrafter::draft(std::span<const ModelDraftJob> jobs) {
  std::vector<ScratchGuard> guards;
  for (const ModelDraftJob& job : jobs) {
    const auto start = job.drafter->start();
    if (!start) continue;
    if (start->read == nullptr) guards.emplace_back(grower_.executor().cells(), start->sequence);
    grower_.begin(job, *start, token_seconds(job.plan, job.drafter->n_context(), job.n_requests));
  }
  grower_.run();
}

}  // namespace forerun
