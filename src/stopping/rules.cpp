#include "stopping/rules.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.h"
#include "stopping/disco.h"
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
  visitor.visit({.name = "lookahead", .help = help}, rule, names());
  visitor.visit({.name = "lookahead-tokens", .help = "fixed: tokens of a draft; heuristic: at first"},
                tokens, {1, 127});
  visitor.visit({.name = "lookahead-threshold", .help = "confidence; adaptive and roc: at first"},
                threshold, {0.0, 1.0});
  visitor.visit({.name = "lookahead-perplexity", .help = "perplexity: that ends a draft"}, perplexity,
                {1.0, 1e6});
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
  if (name == "adaptive") return std::make_unique<AdaptiveConfidence>(options.threshold);
  if (name == "roc") return std::make_unique<RocConfidence>(options.threshold);
  if (name == "perplexity") return std::make_unique<PerplexityThreshold>(options.perplexity);
  if (name == "disco") {
    return std::make_unique<DiscoStopping>(DiscoClassifier::load(options.classifier, models));
  }
  if (name == "oracle") return std::make_unique<Oracle>();
  fail(ErrorCode::kInvalidArgument, "there is no lookahead '{}': choose one of {}", name,
       fmt::join(names(), ", "));
}

}  // namespace forerun
