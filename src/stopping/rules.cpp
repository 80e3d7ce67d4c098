#include "stopping/rules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/error.h"
#include "stopping/thresholds.h"

namespace forerun {
namespace {

constexpr auto kPolicies = std::to_array<StoppingRuleInfo>({
    {"own", "As the drafting method does it; auto: as cost"},
    {"cost", "While further tokens are worth what they take, by what was learnt and measured"},
    {"fixed", "The same number of tokens each time"},
    {"heuristic", "Two more where all were taken, else one less"},
    {"confidence", "Until a token is less probable than a threshold"},
    {"adaptive", "The same, the threshold follows the share that is taken"},
    {"roc", "The same, the threshold that would have been best so far"},
    {"perplexity", "Until the draft's perplexity is above a threshold"},
    {"disco", "Until a classifier says that a token will not be taken (forerun disco train)"},
    {"oracle", "Until a token is not taken: bench spec knows that beforehand"},
});

// So many tokens each time.
class FixedLength final : public StoppingRule {
 public:
  explicit FixedLength(int n_tokens) : n_tokens_(n_tokens) {}
  bool goes_on(const DraftedToken& token) override { return token.depth < n_tokens_; }
  std::optional<int> longest() const override { return n_tokens_; }

 private:
  int n_tokens_;
};

// Hugging Face's dynamic heuristic (Gante, 2023): two more where all were taken, else one less.
class HeuristicLength final : public StoppingRule {
 public:
  explicit HeuristicLength(int first) : n_tokens_(first) {}
  bool goes_on(const DraftedToken& token) override { return token.depth < n_tokens_; }
  void observe(const ChainOutcome& outcome) override {
    if (outcome.n_drafted == 0) return;
    if (outcome.n_agreed < outcome.n_drafted) {
      n_tokens_ = std::max(1, n_tokens_ - 1);
    } else if (outcome.n_drafted >= n_tokens_) {  // else something other than this rule ended it
      n_tokens_ += 2;
    }
  }

 private:
  int n_tokens_;
};

// DISCO's rival: stops where the perplexity of the draft so far, the inverse of the mean
// probability of its tokens on a logarithmic scale, is above a threshold.
class PerplexityThreshold final : public StoppingRule {
 public:
  explicit PerplexityThreshold(double most) : log_most_(std::log(most)) {}
  bool goes_on(const DraftedToken& token) override {
    double sum = 0;
    for (const double probability : token.probabilities) sum -= std::log(std::max(probability, 1e-30));
    return sum / token.depth <= log_most_;
  }

 private:
  double log_most_;
};

// The best that knowing when to stop can do: stops behind the first token that will not be taken,
// because it was told the answer. For benchmarks; DISCO's upper bound.
class Oracle final : public StoppingRule {
 public:
  bool goes_on(const DraftedToken& token) override { return token.token == token.known; }
};

std::vector<std::string_view> names() {
  std::vector<std::string_view> names;
  for (const StoppingRuleInfo& policy : kPolicies) names.push_back(policy.name);
  return names;
}

}  // namespace

std::span<const StoppingRuleInfo> stopping_rules() {
  return kPolicies;
}

void StoppingOptions::describe(OptionVisitor& visitor) {
  std::string help = "When to stop drafting, with a model that drafts:";
  for (const StoppingRuleInfo& info : kPolicies)
    help += fmt::format("\n{:<10} {}", info.name, info.summary);
  visitor.visit({"lookahead", help}, rule, names());
  visitor.visit({"lookahead-tokens", "fixed: tokens of a draft; heuristic: at first"}, tokens, {1, 127});
  visitor.visit({"lookahead-threshold", "confidence; adaptive and roc: at first"}, threshold,
                {0.0, 1.0});
  visitor.visit({"lookahead-perplexity", "perplexity: that ends a draft"}, perplexity, {1.0, 1e6});
  visitor.visit({.name = "lookahead-classifier",
                 .help = "disco: a file of 'forerun disco train'",
                 .if_empty = rule != "disco" ? ""
                                             : "the lookahead disco needs a classifier: "
                                               "--lookahead-classifier FILE ('forerun disco train' "
                                               "makes one)"},
                classifier, {});
}

std::unique_ptr<StoppingRule> make_stopping_rule(const StoppingOptions& options,
                                                 const ModelPair& models) {
  const std::string& name = options.rule;
  if (name == "own" || options.is_by_cost()) return nullptr;
  if (name == "fixed") return std::make_unique<FixedLength>(options.tokens);
  if (name == "heuristic") return std::make_unique<HeuristicLength>(options.tokens);
  if (name == "confidence") return std::make_unique<ConfidenceThreshold>(options.threshold);
  if (name == "adaptive") return std::make_unique<AdaptiveThreshold>(options.threshold);
  if (name == "roc") return std::make_unique<RocThreshold>(options.threshold);
  if (name == "perplexity") return std::make_unique<PerplexityThreshold>(options.perplexity);
  if (name == "oracle") return std::make_unique<Oracle>();
  if (name == "disco") {
    return std::make_unique<DiscoStopping>(DiscoClassifier::load(options.classifier, models));
  }
  fail(ErrorCode::kInvalidArgument, "there is no lookahead '{}': choose one of {}", name,
       fmt::join(names(), ", "));
}

}  // namespace forerun
