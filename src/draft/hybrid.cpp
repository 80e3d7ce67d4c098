#include "draft/hybrid.h"

#include <algorithm>
#include <functional>

#include "budget/draft_value.h"
#include "core/check.h"

namespace forerun {
namespace {

// The model's bit of DraftNode::proposers.
constexpr auto kModelBit = static_cast<uint8_t>(1u << (kMaxProposers - 1));
// Of a tree's nodes, so many are for the model.
constexpr int kModelShare = 4;

}  // namespace

class HybridMethod::HybridDrafter final : public DrafterGroup {
 public:
  HybridDrafter(HybridMethod& method, std::span<const TokenId> prompt)
      : DrafterGroup(method.methods_, prompt), method_(method) {}

  void attach(const RequestView& request) override {
    request_ = &request;
    DrafterGroup::attach(request);
  }
  void draft(const DraftLimits& limits, DraftTree& tree) override {
    const DraftJob job{.drafter = this, .limits = limits, .tree = &tree};
    method_.draft({&job, 1});
  }
  void append(std::span<const TokenId> tokens) override {
    method_.acceptance_.observe(tokens, acceptance);
    DrafterGroup::append(tokens);
  }

  int n_context() const {
    CHECK(request_ != nullptr);
    return static_cast<int>(request_->text().size());
  }
  Drafter& texts() { return drafter(0); }
  Drafter& model() { return drafter(1); }
  DraftTree model_tree;
  std::vector<double> chances;   // of what the texts give now
  RequestAcceptance acceptance;  // and how they did so far

 private:
  HybridMethod& method_;
  const RequestView* request_ = nullptr;
};

HybridMethod::HybridMethod(std::unique_ptr<DraftMethod> texts, std::unique_ptr<DraftMethod> model,
                           const Calibration& costs)
    : costs_(costs) {
  methods_.push_back(std::move(texts));
  methods_.push_back(std::move(model));
}

HybridMethod::~HybridMethod() = default;

std::unique_ptr<Drafter> HybridMethod::begin(std::span<const TokenId> prompt) {
  return std::make_unique<HybridDrafter>(*this, prompt);
}

void HybridMethod::draft(std::span<const DraftJob> jobs) {
  jobs_.clear();
  for (const DraftJob& job : jobs) {
    auto& drafter = static_cast<HybridDrafter&>(*job.drafter);
    const int n_model = std::max(1, job.limits.max_nodes / kModelShare);
    const DraftLimits of_texts{.max_nodes = job.limits.max_nodes - n_model,
                               .max_depth = job.limits.max_depth};
    if (of_texts.max_nodes > 0) drafter.texts().draft(of_texts, *job.tree);
    AcceptanceModel::propose(*job.tree, drafter.acceptance);
    acceptance_.estimate(*job.tree, drafter.acceptance, drafter.chances);
    drafter.model_tree.clear();
    jobs_.push_back({.drafter = &drafter.model(),
                     .limits = {.max_nodes = n_model, .max_depth = job.limits.max_depth},
                     .tree = &drafter.model_tree,
                     .n_requests = job.n_requests,
                     .rival_rate = expected_rate(drafter.chances, drafter.n_context(), job.n_requests),
                     .hint = job.tree,
                     .hint_chances = drafter.chances});
  }
  methods_[1]->draft(jobs_);
  for (const DraftJob& job : jobs) {
    const DraftTree& drafted = static_cast<HybridDrafter&>(*job.drafter).model_tree;
    // Rules that compare distributions need to know how every token of a level was drawn.
    if (drafted.has_distributions()) {
      *job.tree = drafted;
    } else {
      job.tree->lay_over(drafted, kModelBit);
    }
  }
}

// Tokens per second when what pays of a tree with these chances is verified.
double HybridMethod::expected_rate(std::span<const double> chances, int n_context, int n_requests) {
  sorted_.assign(chances.begin(), chances.end());
  std::sort(sorted_.begin(), sorted_.end(), std::greater<>());
  return best_rows(costs_.curve, sorted_, n_context, n_requests).tokens_per_second;
}

}  // namespace forerun
