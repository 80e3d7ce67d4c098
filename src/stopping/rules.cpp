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

// Makes an OfRequest for each request, of what they all share.
template <typename OfRequest, typename Shared>
class RuleOf final : public StoppingRule {
 public:
  explicit RuleOf(Shared shared) : shared_(std::move(shared)) {}

  std::unique_ptr<RequestStoppingRule> begin() override { return std::make_unique<OfRequest>(shared_); }
  std::optional<int> longest() const override {
    if constexpr (requires { shared_.longest(); }) return shared_.longest();
    return std::nullopt;
  }

 private:
  Shared shared_;
};

// So many tokens each time.
struct FixedLength {
  int n_tokens;

  bool goes_on(const DraftedToken& token) const { return token.depth < n_tokens; }
  int longest() const { return n_tokens; }
};

// Hugging Face's dynamic heuristic (Gante, 2023): two more where all were taken, else one less.
struct HeuristicLength {
  int n_tokens;  // at first

  bool goes_on(const DraftedToken& token) const { return token.depth < n_tokens; }
  void observe(const ChainOutcome& outcome) {
    if (outcome.n_drafted == 0) return;
    if (outcome.n_agreed < outcome.n_drafted) {
      n_tokens = std::max(1, n_tokens - 1);
    } else if (outcome.n_drafted >= n_tokens) {  // else something other than this rule ended it
      n_tokens += 2;
    }
  }
};

// Stops behind a token that is less probable.
struct ConfidenceThreshold {
  double least;

  bool goes_on(const DraftedToken& token) const { return token.probability >= least; }
};

// The best that knowing when to stop can do: stops behind the first token that will not be taken,
// because it was told the answer. For benchmarks; DISCO's upper bound.
struct Oracle {
  bool goes_on(const DraftedToken& token) const { return token.token == token.known; }
};

class RocConfidence final : public RequestStoppingRule {
 public:
  explicit RocConfidence(RocThreshold& threshold) : threshold_(threshold) {}
  void begin() override { probabilities_.clear(); }
  bool goes_on(const DraftedToken& token) override {
    probabilities_.push_back(token.probability);
    return token.probability >= threshold_.value();
  }
  void observe(const ChainOutcome& outcome) override {
    for (int i = 0; i < outcome.n_tested; ++i) {
      threshold_.observe(probabilities_[static_cast<size_t>(i)], i < outcome.n_agreed);
    }
    threshold_.update();
  }

 private:
  RocThreshold& threshold_;
  std::vector<double> probabilities_;
};

// DISCO's rival: stops where the perplexity of the draft so far, the inverse of the mean
// probability of its tokens on a logarithmic scale, is above a threshold.
class PerplexityThreshold final : public RequestStoppingRule {
 public:
  explicit PerplexityThreshold(double most) : log_most_(std::log(most)) {}
  void begin() override { sum_ = 0; }
  bool goes_on(const DraftedToken& token) override {
    sum_ -= std::log(std::max(token.probability, 1e-30));
    return sum_ / token.depth <= log_most_;
  }

 private:
  double log_most_;
  double sum_ = 0;  // of negative log-probabilities
};

template <typename Rule>
std::unique_ptr<StoppingRule> shared(Rule rule) {
  return std::make_unique<RuleOf<SharedRule<Rule>, Rule>>(std::move(rule));
}

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
  if (name == "fixed") return shared(FixedLength{options.tokens});
  if (name == "heuristic") return shared(HeuristicLength{options.tokens});
  if (name == "confidence") return shared(ConfidenceThreshold{options.threshold});
  if (name == "adaptive") return shared(AdaptiveThreshold(options.threshold));
  if (name == "roc") {
    return std::make_unique<RuleOf<RocConfidence, RocThreshold>>(RocThreshold(options.threshold));
  }
  if (name == "perplexity") {
    return std::make_unique<RuleOf<PerplexityThreshold, double>>(options.perplexity);
  }
  if (name == "disco") {
    return std::make_unique<DiscoStopping>(DiscoClassifier::load(options.classifier, models));
  }
  if (name == "oracle") return shared(Oracle{});
  fail(ErrorCode::kInvalidArgument, "there is no lookahead '{}': choose one of {}", name,
       fmt::join(names(), ", "));
}

}  // namespace forerun
