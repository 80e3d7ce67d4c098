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
#include "layers/agreement.h"
#include "layers/block_search.h"
#include "layers/knapspec.h"
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

constexpr JsonFileKind kState{.version_field = "forerun_swift",
                              .version = 1,
                              .what = "state of SWIFT's search",
                              .command = "forerun run --spec swift --swift-state NEW_FILE"};

// Begins with `first`, or goes on from `state`, if there is one of them.
SubsetSearch make_search(const SwiftOptions& options, const Model& model,
                         const std::optional<LayerSet>& first = std::nullopt,
                         const Json* state = nullptr) {
  const auto strategy = options.is_published() ? SubsetStrategy::kSwift : SubsetStrategy::kNeighbour;
  BlockSearchOptions search{.skip = options.skip,
                            .max_candidates = options.max_candidates,
                            .max_without_progress = options.max_without_progress};
  if (first) search.first_sets = {*first};
  // Scores are of other text now and then.
  SubsetSearchOptions subset = subset_options(strategy, search, /*is_noisy=*/true);
  if (options.is_published()) subset.good_score = options.good_agreement;
  SubsetProblem problem = block_problem(model.config().n_layers, strategy, search);
  return state != nullptr ? SubsetSearch::from_json(*state, std::move(problem), subset)
                          : SubsetSearch(std::move(problem), subset);
}

// Goes on from the state's file, if there is one, with the share that was left out at last if that was
// less than is asked for.
SubsetSearch first_search(SwiftOptions& options, const Model& model) {
  std::error_code ignored;
  const bool is_kept = !options.state.empty() && std::filesystem::exists(options.state, ignored);
  if (!is_kept) return make_search(options, model);
  std::optional<SubsetSearch> search;
  load_json(kState, options.state, [&](const Json& state) {
    if (options.is_published() && options.adapt && state.value("skip", Json()) == kLessSkip) {
      options.skip = std::min(options.skip, kLessSkip);
    }
    if (state.at("model").get<std::string>() != fingerprint_text(model.fingerprint())) {
      fail_other_model(kState, options.state);
    }
    try {
      search = make_search(options, model, std::nullopt, &state.at("search"));
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kInvalidArgument) throw;
      fail(error.code(), "{}: {}", options.state, error.what());
    }
  });
  return std::move(*search);
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

SwiftSelector::SwiftSelector(const SwiftOptions& options, const SelectorResources& resources)
    : options_(options),
      resources_(resources),
      time_(options.share),
      idle_blocks_(resources.executor, resources.costs),
      search_(first_search(options_, model())),
      n_kept_(search_.n_scores()),
      has_begun_(options.is_published() || search_.n_scores() > 0) {}

NextPlan SwiftSelector::begin(const RequestView& request) {
  return [this, tokens = Tokens{.request = &request}]() mutable { return next_plan(tokens); };
}

std::optional<DraftPlan> SwiftSelector::next_plan(Tokens& tokens) {
  const size_t n_text = tokens.request->text().size();
  time_.begin_step(/*is_first=*/tokens.end == 0, resources_.costs.pass(1, tokens.request->n_context()));
  const bool is_stale = !has_window(tokens) || n_text > tokens.end + kSameWindow;
  if (options_.is_published() || is_stale) tokens = {.request = tokens.request, .end = n_text};
  try_candidate(tokens);
  const auto layers = best();
  return layers ? std::optional(DraftPlan{.layers = *layers}) : std::nullopt;
}

void SwiftSelector::finish() {
  if (options_.state.empty() || search_.n_scores() == n_kept_) return;
  const Json json{{kState.version_field, kState.version},
                  {"model", fingerprint_text(model().fingerprint())},
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
  if (!options_.is_published() || !options_.adapt || options_.skip <= kLessSkip) return;
  drafted_.n_tested += outcome.n_tested;
  drafted_.n_agreed += outcome.n_agreed;
  if (drafted_.n_tested < kEnoughTested) return;
  const bool is_good = drafted_.n_agreed >= kGoodShare * drafted_.n_tested;
  drafted_ = {};
  if (is_good) return;
  options_.skip = kLessSkip;
  search_ = make_search(options_, model());
  n_kept_ = 0;
}

std::optional<LayerSet> SwiftSelector::best() const {
  const auto& found = search_.best();
  if (options_.is_published() && !found) return uniform_layers(model().config().n_layers, options_.skip);
  if (!found || (!options_.is_published() && found->score <= 1)) return std::nullopt;
  return layers_without(found->set);
}

std::optional<double> SwiftSelector::score(Tokens& tokens, const LayerSet& layers) {
  AgreementWindow window{
      .request = tokens.request, .end = tokens.end, .n = static_cast<size_t>(options_.window)};
  if (!tokens.model_tokens) tokens.model_tokens = model_tokens(resources_.executor, window);
  window.expected = *tokens.model_tokens;
  const auto agreement = measured_agreement(resources_.executor, layers, {&window, 1});
  if (!agreement || options_.is_published()) return agreement;
  return draft_speedup(
      resources_.costs, layers,
      {.agreement = *agreement, .n_seen = options_.window, .n_context = tokens.request->n_context()});
}

void SwiftSelector::begin_search(Tokens& tokens) {
  const Stopwatch watch;
  const int n_context = tokens.request->n_context();
  std::optional<LayerSet> best;
  double best_score = 0;
  in_free_cells([&] {
    TextBlockStates states(resources_.executor, *tokens.request, tokens.end, kQuickTokens);
    for (const KnapsackChoice& choice : quick_choices(states, resources_.costs, n_context)) {
      const auto found = score(tokens, choice.layers);
      if (!found) return;
      if (*found > best_score) best = choice.layers;
      best_score = std::max(best_score, *found);
    }
  });
  if (best) search_ = make_search(options_, model(), best);
  has_begun_ = true;
  time_.use(watch.seconds());
}

// To begin with: its branches, and the few sets that come of it.
bool SwiftSelector::has_time(const RequestView& request) {
  if (has_begun_) return time_.allows(candidate_seconds_);
  const int n_context = request.n_context();
  const double seconds =
      2 * (resources_.costs.pass(kQuickBranches * static_cast<int>(kQuickTokens), n_context) +
           resources_.costs.pass(options_.window, n_context));
  return time_.allows(seconds) || idle_blocks_.promises_much(request, seconds, time_);
}

bool SwiftSelector::has_window(const Tokens& tokens) const {
  const size_t n_before = options_.is_published() ? tokens.request->n_prompt() : 0;
  return tokens.end > n_before + static_cast<size_t>(options_.window) + 1;
}

void SwiftSelector::try_candidate(Tokens& tokens) {
  if (search_.ended() || !has_window(tokens) || !has_time(*tokens.request)) return;
  if (!has_begun_) begin_search(tokens);
  const Stopwatch watch;
  const auto found = score(tokens, layers_without(search_.propose()));
  if (!found) return;
  search_.tell(*found);
  candidate_seconds_ = watch.seconds();
  time_.use(candidate_seconds_);
}

}  // namespace forerun
