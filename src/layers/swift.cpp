#include "layers/swift.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "core/replace_file.h"
#include "cost/draft_value.h"
#include "layers/block_search.h"
#include "layers/layer_file.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::array<std::string_view, 2> kSearches = {"neighbour", "published"};
// Candidates are tried on the same tokens until the text has grown by so many.
constexpr size_t kSameWindow = 256;

// Where so many drafted tokens were compared and less than this share was taken, less is left out.
constexpr int kEnoughTested = 64;
constexpr double kGoodShare = 0.7;
constexpr double kLessSkip = 0.4;

bool is_published(const SwiftOptions& options) {
  return options.search == "published";
}

constexpr JsonFileKind kState{.version_field = "forerun_swift",
                              .version = 1,
                              .what = "state of SWIFT's search",
                              .command = "forerun run --spec swift --swift-state NEW_FILE"};

// The file of the state, if there is one.
std::optional<Json> kept_state(const SwiftOptions& options) {
  std::error_code ignored;
  if (options.state.empty() || !std::filesystem::exists(options.state, ignored)) return std::nullopt;
  return load_json(kState, options.state);
}

SubsetSearch restore_search(const Json& state, const std::filesystem::path& path, uint64_t model,
                            SubsetProblem problem, const SubsetSearchOptions& options) {
  try {
    if (parse_fingerprint(state.at("model")) != model) fail_other_model(kState, path);
    return SubsetSearch::from_json(state.at("search"), std::move(problem), options);
  } catch (const Json::exception&) {
    fail_damaged(kState, path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidArgument) throw;
    fail(error.code(), "{}: {}", path.string(), error.what());
  }
}

// The share that was left out at last, if that was less than is asked for.
SwiftOptions with_kept_skip(SwiftOptions options) {
  const auto state = is_published(options) && options.adapt ? kept_state(options) : std::nullopt;
  if (state && state->value("skip", Json()) == kLessSkip)
    options.skip = std::min(options.skip, kLessSkip);
  return options;
}

// `first`: what to begin with.
SubsetSearch make_search(const SwiftOptions& options, const Model& model,
                         const std::optional<LayerSet>& first = std::nullopt) {
  const auto strategy = is_published(options) ? SubsetStrategy::kSwift : SubsetStrategy::kNeighbour;
  BlockSearchOptions search{.skip = options.skip,
                            .max_candidates = options.max_candidates,
                            .max_without_progress = options.max_without_progress};
  if (first) search.first_sets = {*first};
  // Scores are of other text now and then.
  SubsetSearchOptions subset = subset_options(strategy, search, /*is_noisy=*/true);
  if (is_published(options)) subset.good_score = options.good_agreement;
  SubsetProblem problem = block_problem(model.config().n_layers, strategy, search);
  const auto state = kept_state(options);
  if (!state) return SubsetSearch(std::move(problem), subset);
  return restore_search(*state, options.state, model.fingerprint(), std::move(problem), subset);
}

}  // namespace

void SwiftOptions::describe(OptionVisitor& visitor) {
  visitor.visit({"search", "How candidates are found"}, search, kSearches);
  visitor.visit({"skip", "Share of the blocks left out, as published"}, skip, {0.0, 0.9});
  visitor.visit({"adapt", "Leave out less where few drafts are taken, as published"}, adapt);
  visitor.visit({"window", "Tokens that candidates are tried on"}, window, {4, 256});
  visitor.visit({"share", "Share of the time that the search may take (1: no limit)"}, share,
                {0.0, 1.0});
  visitor.visit({"candidates", "Candidates tried at most"}, max_candidates, {1, 100000});
  visitor.visit({"patience", "Candidates without a better one that end the search"},
                max_without_progress, {1, 100000});
  visitor.visit({"enough", "Agreement that ends a search as published"}, good_agreement, {0.0, 1.0});
  visitor.visit({"state", "File that keeps what was learnt, for later runs"}, state, {});
}

class SwiftSelector::Chooser final : public RequestLayers {
 public:
  Chooser(SwiftSelector& selector, const RequestView& request)
      : selector_(selector), tokens_{.request = &request} {}

  std::optional<DraftPlan> plan() override {
    const size_t n_text = tokens_.request->text().size();
    selector_.time_.begin_step(std::exchange(is_first_step_, false),
                               selector_.resources_.costs.pass(1, static_cast<int>(n_text)));
    const bool is_stale = !selector_.has_window(tokens_) || n_text > tokens_.end + kSameWindow;
    if (is_published(selector_.options_) || is_stale) {
      tokens_ = {.request = tokens_.request, .end = n_text};
    }
    selector_.try_candidate(tokens_);
    const auto layers = selector_.best();
    return layers ? std::optional(DraftPlan{.layers = *layers}) : std::nullopt;
  }
  void observe(const ChainOutcome& outcome) override { selector_.observe(outcome); }
  void finish() override { selector_.keep_state(); }

 private:
  SwiftSelector& selector_;
  Tokens tokens_;
  bool is_first_step_ = true;
};

SwiftSelector::SwiftSelector(const SwiftOptions& options, const SelectorResources& resources)
    : options_(with_kept_skip(options)),
      resources_(resources),
      time_(options.share),
      probe_(resources.executor),
      idle_blocks_(resources.executor, resources.costs),
      search_(make_search(options_, resources.executor.model())),
      n_kept_(search_.n_scores()),
      has_begun_(is_published(options) || search_.n_scores() > 0) {}

SwiftSelector::~SwiftSelector() {
  keep_state();
}

std::unique_ptr<RequestLayers> SwiftSelector::begin(const RequestView& request) {
  return std::make_unique<Chooser>(*this, request);
}

void SwiftSelector::keep_state() {
  if (options_.state.empty() || search_.n_scores() == n_kept_) return;
  const Json json{{kState.version_field, kState.version},
                  {"model", fingerprint_text(resources_.executor.model().fingerprint())},
                  {"skip", options_.skip},
                  {"search", search_.to_json()}};
  try {
    replace_file(options_.state, json.dump() + "\n");
    n_kept_ = search_.n_scores();
  } catch (const Error& error) {
    if (resources_.warn) resources_.warn(error.what());
  }
}

// Sets of another size score otherwise: the search begins anew.
void SwiftSelector::observe(const ChainOutcome& outcome) {
  if (!is_published(options_) || !options_.adapt || options_.skip <= kLessSkip) return;
  drafted_.n_tested += outcome.n_tested;
  drafted_.n_agreed += outcome.n_agreed;
  if (drafted_.n_tested < kEnoughTested) return;
  const bool is_good = drafted_.n_agreed >= kGoodShare * drafted_.n_tested;
  drafted_ = {};
  if (is_good) return;
  options_.skip = kLessSkip;
  SwiftOptions fresh = options_;
  fresh.state.clear();
  search_ = make_search(fresh, resources_.executor.model());
  n_kept_ = 0;
}

std::optional<LayerSet> SwiftSelector::best() const {
  const auto& found = search_.best();
  if (is_published(options_) && !found) {
    return uniform_layers(resources_.executor.model().config().n_layers, options_.skip);
  }
  if (!found || (!is_published(options_) && found->score <= 1)) return std::nullopt;
  return layers_without(found->set);
}

// Published: agreement. Ours: how many times as fast as plain decoding.
double SwiftSelector::score(double agreement, const LayerSet& layers, int n_context) const {
  if (is_published(options_)) return agreement;
  return draft_speedup(resources_.costs, layers,
                       {.agreement = agreement, .n_seen = options_.window, .n_context = n_context});
}

// The best of what KnapSpec's programme gives with a few branches over a few tokens.
std::optional<LayerSet> SwiftSelector::quick_choice(Tokens& tokens) {
  const RequestView& request = *tokens.request;
  const auto n_context = static_cast<int>(request.text().size());
  std::optional<LayerSet> best;
  double best_score = 0;
  in_free_cells([&] {
    TextBlockStates states(resources_.executor, request, tokens.end, kQuickTokens);
    for (const KnapsackChoice& choice : quick_choices(states, resources_.costs, n_context)) {
      const auto agreed = agreement(tokens, choice.layers);
      if (!agreed) return;
      const double found = score(*agreed, choice.layers, n_context);
      if (found > best_score) best = choice.layers;
      best_score = std::max(best_score, found);
    }
  });
  return best;
}

std::optional<double> SwiftSelector::agreement(Tokens& tokens, const LayerSet& layers) {
  AgreementWindow window{
      .request = tokens.request, .end = tokens.end, .n = static_cast<size_t>(options_.window)};
  if (!tokens.has_model_tokens) tokens.model_tokens = probe_.model_tokens(window);
  tokens.has_model_tokens = true;
  window.expected = tokens.model_tokens;
  return probe_.measure(layers, {&window, 1});
}

void SwiftSelector::begin_search(Tokens& tokens) {
  const Stopwatch watch;
  const auto first = quick_choice(tokens);
  if (first) search_ = make_search(options_, resources_.executor.model(), first);
  has_begun_ = true;
  time_.use(watch.seconds());
}

// To begin with: its branches, and the few sets that come of it.
bool SwiftSelector::has_time(const RequestView& request) {
  if (has_begun_) return time_.allows(candidate_seconds_);
  const auto n_context = static_cast<int>(request.text().size());
  const double seconds =
      2 * (resources_.costs.pass(kQuickBranches * static_cast<int>(kQuickTokens), n_context) +
           resources_.costs.pass(options_.window, n_context));
  return time_.allows(seconds) || idle_blocks_.promises_much(request, seconds, time_);
}

bool SwiftSelector::has_window(const Tokens& tokens) const {
  const size_t n_before = is_published(options_) ? tokens.request->n_prompt() : 0;
  return tokens.end > n_before + static_cast<size_t>(options_.window) + 1;
}

void SwiftSelector::try_candidate(Tokens& tokens) {
  const RequestView& request = *tokens.request;
  if (search_.ended() || !has_window(tokens) || !has_time(request)) return;
  if (!has_begun_) begin_search(tokens);
  const Stopwatch watch;
  const LayerSet layers = layers_without(search_.propose());
  const auto agreed = agreement(tokens, layers);
  if (!agreed) return;
  search_.tell(score(*agreed, layers, static_cast<int>(request.text().size())));
  candidate_seconds_ = watch.seconds();
  time_.use(candidate_seconds_);
}

}  // namespace forerun
