#include "tune/layer_objective.h"

#include <algorithm>

#include "core/error.h"
#include "cost/draft_value.h"
#include "layers/knapspec.h"
#include "model/own_sequence.h"
#include "plan/own_planner.h"

namespace forerun {
namespace {

// Tokens that see each other's keys and values as the candidate has them: about as many as a
// draft has at most.
constexpr size_t kWindow = 32;
// Tokens that the knapsack's branches have.
constexpr size_t kKnapsackTokens = 8;
// Candidates between two measurements of plain decoding.
constexpr int kPlainEvery = 8;

std::vector<LayerSet> layers_of(const std::vector<KnapsackChoice>& choices) {
  std::vector<LayerSet> sets;
  for (const KnapsackChoice& choice : choices) sets.push_back(choice.layers);
  return sets;
}

}  // namespace

// A text in the cache, its last token not read.
class ExpectedSpeed::Text final : public RequestView {
 public:
  Text(Executor& executor, SearchText text)
      : sequence_(executor.cells()),
        sampler_(greedy_options(1).sampling, executor.model().config().n_vocab),
        text_(std::move(text)) {
    read_all(executor, sequence_.id(), std::span(text_.tokens).first(text_.tokens.size() - 1));
  }

  std::span<const TokenId> text() const override { return text_.tokens; }
  size_t n_prompt() const override { return text_.n_prompt; }
  SequenceId sequence() const override { return sequence_.id(); }
  const Sampler& sampler() const override { return sampler_; }
  const SamplerState& state() const override { return state_; }

 private:
  OwnSequence sequence_;
  Sampler sampler_;
  SamplerState state_;
  SearchText text_;
};

ExpectedSpeed::ExpectedSpeed(Executor& executor, const PassCosts& costs, std::vector<SearchText> texts)
    : executor_(executor), costs_(costs) {
  double context_sum = 0;
  for (SearchText& text : texts) {
    if (text.n_prompt == 0 || text.n_prompt >= text.tokens.size()) continue;
    const Text& read = *texts_.emplace_back(std::make_unique<Text>(executor, std::move(text)));
    const size_t n_text = read.text().size();
    for (size_t begin = read.n_prompt(); begin < n_text; begin += kWindow) {
      const size_t n = std::min(kWindow, n_text - begin);
      windows_.push_back({.request = &read, .end = begin + n, .n = n});
      n_tokens_ += static_cast<int>(n);
      context_sum += static_cast<double>(n * begin);
    }
  }
  if (n_tokens_ == 0) {
    fail(ErrorCode::kInvalidArgument, "there is no answer to search layers on: use other prompts");
  }
  if (executor.cells().n_free() < std::min(n_tokens_, executor.max_rows())) {
    fail(ErrorCode::kInvalidArgument,
         "the texts to search layers on leave no room in the context: use fewer or shorter ones");
  }
  n_context_ = static_cast<int>(context_sum / n_tokens_);
}

ExpectedSpeed::~ExpectedSpeed() = default;

double ExpectedSpeed::agreement(const LayerSet& layers) {
  const auto agreement = measured_agreement(executor_, layers, windows_);
  if (!agreement) {
    fail(ErrorCode::kInvalidArgument,
         "the context has no room left to try layers: use fewer or shorter texts");
  }
  return *agreement;
}

double ExpectedSpeed::speedup(const LayerSet& layers) {
  return draft_speedup(costs_, layers,
                       {.agreement = agreement(layers), .n_seen = n_tokens_, .n_context = n_context_});
}

std::unique_ptr<BlockStates> ExpectedSpeed::states(size_t n_tokens) {
  const auto longest = std::ranges::max_element(windows_, {}, &AgreementWindow::n);
  return std::make_unique<TextBlockStates>(executor_, *longest->request, longest->end,
                                           std::min(n_tokens, longest->n));
}

std::vector<LayerSet> ExpectedSpeed::knapsack_sets(double cap) {
  return layers_of(
      knapspec_choices(*states(kKnapsackTokens), {.cap = cap, .branches = 0}, costs_, n_context_));
}

std::vector<LayerSet> ExpectedSpeed::quick_sets() {
  return layers_of(quick_choices(*states(kQuickTokens), costs_, n_context_));
}

MeasuredSpeed::MeasuredSpeed(Executor& executor, PassCosts& costs, const Vocabulary& vocabulary,
                             const ChainOptions& draft, std::vector<SearchText> texts)
    : executor_(executor),
      costs_(costs),
      draft_(draft),
      timer_(executor, vocabulary, std::move(texts)) {}

double MeasuredSpeed::rate(const Speculation& speculation) {
  timer_.warm_up(speculation);
  double ms = 0;
  int n_tokens = 0;
  for (size_t text = 0; text < timer_.n_texts(); ++text) {
    ms += timer_.answer(text, speculation);
    n_tokens += timer_.n_timed(text);
  }
  return 1e3 * n_tokens / std::max(ms, 1e-3);
}

double MeasuredSpeed::speedup(const LayerSet& layers) {
  if (plain_rate_ == 0 || n_since_plain_ == kPlainEvery) {
    const double now = rate({});
    plain_rate_ = plain_rate_ == 0 ? now : (plain_rate_ + now) / 2;
    n_since_plain_ = 0;
  }
  ++n_since_plain_;
  DrafterSet drafters;
  drafters.models.push_back(std::make_unique<LayerSkippingDrafter>(
      draft_, executor_, costs_, std::make_unique<FixedLayers>(layers)));
  OwnPlanner planner(std::move(drafters), kLargestTree);
  return rate({.planner = &planner}) / plain_rate_;
}

}  // namespace forerun
