#include "plan/model_choice.h"

#include <algorithm>
#include <array>

namespace forerun {
namespace {

// So many further tokens are looked at behind each token of a draft. The cost of rows has steps, so that
// one more token may not pay where three do.
constexpr int kFewTokens = 6;
// How much more than it costs a draft must bring to be begun: estimates are rough.
constexpr double kStartMargin = 1.05;
// Of the tokens that a model did not draw: which join the proposals, and behind which draws none do.
constexpr size_t kSiblings = 4;
constexpr double kLeastSibling = 0.04;
constexpr double kSureToken = 0.92;
// Drafts that are made to see whether they would pay: how long, and how rarely.
constexpr int kTryTokens = 2;
constexpr int kFirstPause = 16;
constexpr int kMaxPause = 1024;
// Such a draft may take this part of the time since the last one, reading the text for it included; for
// the first drafts of all, of what is left of the answer. With several requests there is more time to
// find out, and less to be won. Drafts are known after so many tokens.
constexpr double kStake = 0.05;
constexpr double kSharedStake = 0.02;
constexpr double kKnownTokens = 16;
// How often a draft model is to bring back what reading the text for it takes: the answer may end before
// it did, and behind long prompts drafts bring less than elsewhere, where their chances were learnt.
constexpr double kReadMargin = 3;
// A trial that was held up counts for at most so many times what it was expected to take.
constexpr double kMostSurprise = 8;
// As many steps without a gain are thought to lie before an answer: what drafts would bring at one step
// says little of the others.
constexpr int kDoubtfulSteps = 3;

// All levels below `node` with the nodes that are likely enough to be worth their rows.
void add_levels(const ProposedTree& proposed, std::span<const double> chances, int32_t node,
                const std::array<double, kMostLevels>& rows, TextLevels& levels, size_t level = 0) {
  if (level >= kMostLevels) return;
  for (const int32_t child : proposed.tree.children(node)) {
    const double chance = chances[static_cast<size_t>(child)];
    if (chance < rows[level]) continue;
    levels.chance[level] += chance;
    ++levels.n_nodes[level];
    add_levels(proposed, chances, child, rows, levels, level + 1);
  }
}

}  // namespace

// Follows a chain while it grows: each of its tokens joins the proposals, and says whether another
// one pays.
class ModelChoice::ChainRule final : public StoppingRule {
 public:
  ChainRule(ModelChoice& choice, RequestPlan& request, const Offer& offer, const PassWorth& worth)
      : choice_(choice), request_(request), offer_(offer), worth_(worth) {
    if (compares()) request.proposed.clear();
    request.proposed.spine.clear();
    request.proposed.model = offer.model;
    request.proposed.agreement = offer.plan.agreement;
  }

  bool goes_on(const DraftedToken& token) override {
    join(token);
    choice_.acceptance_.estimate(request_.proposed, request_.acceptance, request_.chances);
    return offer_.is_trial || choice_.gain_of(offer_, request_, worth_, token.n_sharing, kFewTokens) > 0;
  }

 private:
  bool compares() const { return request_.request().compares_distributions(); }
  void join(const DraftedToken& token) {
    DraftTree& tree = request_.proposed.tree;
    std::vector<int32_t>& spine = request_.proposed.spine;
    const int32_t end = spine.empty() ? kRoot : spine.back();
    const uint8_t bit = model_bit(offer_.model);
    const auto probability_of = [&](TokenId id) {
      return token.sums.probability(token.logits.most_of(id));
    };
    const auto add = [&](TokenId id, double probability) {
      const double above = end == kRoot ? 1.0 : static_cast<double>(tree[end].score);
      return tree.add({.token = id,
                       .parent = end,
                       .score = static_cast<float>(above * probability),
                       .source = choice_.drafters_.models[offer_.model]->source(),
                       .proposers = bit});
    };
    const auto known = tree.find_child(end, token.token);
    const int32_t drawn = known ? *known : add(token.token, token.probability);
    tree.add_proposer(drawn, bit);
    if (!compares() && token.probability < kSureToken) {
      for (const ScoredToken& likely :
           token.likeliest.first(std::min(kSiblings, token.likeliest.size()))) {
        const double probability = token.sums.probability(likely.logit);
        if (probability < kLeastSibling) break;
        if (!tree.find_child(end, likely.token)) add(likely.token, probability);
      }
    }
    for (const int32_t child : tree.children(end)) {
      tree.set_probability(child, probability_of(tree[child].token));
    }
    spine.push_back(drawn);
  }

  ModelChoice& choice_;
  RequestPlan& request_;
  const Offer offer_;
  const PassWorth& worth_;
};

ModelChoice::ModelChoice(const DrafterSet& drafters, const PassCosts& costs,
                         const AcceptanceModel& acceptance, const std::function<double()>& now)
    : drafters_(drafters),
      costs_(costs),
      acceptance_(acceptance),
      now_(now),
      trials_(drafters.models.size()) {}

void ModelChoice::draft(std::span<const PlanJob> jobs, const PassWorth& worth) {
  std::vector<std::unique_ptr<ChainRule>> rules;
  for (Trials& trials : trials_) trials.is_granted = false;
  std::vector<std::optional<Offer>> offers;
  for (const PlanJob& job : jobs) {
    job.request->drafted.clear();
    job.request->proposed.spine.clear();
    offers.push_back(best_offer(*job.request, worth));
  }
  withdraw(jobs, offers, worth);
  std::vector<std::vector<ModelDraftJob>> wanted(drafters_.models.size());
  std::vector<TrialsOfPass> trials(drafters_.models.size());
  for (size_t i = 0; i < jobs.size(); ++i) {
    const PlanJob& job = jobs[i];
    RequestPlan& request = *job.request;
    const auto& offer = offers[i];
    if (!offer) continue;
    rules.push_back(std::make_unique<ChainRule>(*this, request, *offer, worth));
    DraftLimits limits = job.limits;
    if (offer->is_trial) {
      limits.max_depth = std::min(limits.max_depth, kTryTokens);
      ++trials[offer->model].n;
      trials[offer->model].seconds += offer->trial_seconds;
    } else {
      // What trials took beyond their share is still to be saved up.
      Trials& known = trials_[offer->model];
      known = {.saved_seconds = std::min(0.0, known.saved_seconds)};
    }
    request.hint = request.proposed.tree;
    request.hint_chances = request.chances;
    wanted[offer->model].push_back({.drafter = request.models[offer->model].get(),
                                    .plan = offer->plan,
                                    .limits = limits,
                                    .tree = &request.drafted,
                                    .n_requests = worth.n_requests,
                                    .rule = rules.back().get(),
                                    .hint = &request.hint,
                                    .hint_chances = request.hint_chances});
  }
  for (size_t model = 0; model < wanted.size(); ++model) {
    if (!wanted[model].empty()) draft_with(model, wanted[model], trials[model]);
  }
}

void ModelChoice::draft_with(size_t model, std::span<const ModelDraftJob> jobs,
                             const TrialsOfPass& trials) {
  const double begin = now_();
  drafters_.models[model]->draft(jobs);
  if (trials.n == 0) return;
  const double seconds = (now_() - begin) * trials.n / static_cast<double>(jobs.size());
  double& saved = trials_[model].saved_seconds;
  saved = std::min(0.0, saved - std::min(seconds, kMostSurprise * trials.seconds));
}

std::optional<ModelChoice::Offer> ModelChoice::best_offer(RequestPlan& request, const PassWorth& worth) {
  std::vector<Offer> offers;
  double best_at_once = 0;  // what is gained without reading first
  request.promises.resize(request.models.size());
  for (size_t model = 0; model < request.models.size(); ++model) {
    auto plan = request.models[model]->plan();
    if (!plan) continue;
    Offer offer{.model = model, .plan = std::move(*plan)};
    if (worth.n_requests > 1 && !is_known(model)) {
      // One request finds out for all.
      if (is_time_to_try(offer, request, worth)) return tried(std::move(offer), kFirstPause);
      continue;
    }
    offer.gain = gain_of(offer, request, worth, worth.n_requests);
    if (request.models[model]->seconds_to_read() <= 0) best_at_once = std::max(best_at_once, offer.gain);
    offers.push_back(std::move(offer));
  }
  std::optional<Offer> best;
  std::vector<Offer> refused;
  for (Offer& offer : offers) {
    request.promises[offer.model].gain += std::max(0.0, offer.gain - best_at_once);
    ++request.promises[offer.model].n_steps;
    if (offer.gain > 0 && may_read(offer, request, worth)) {
      // Of models that both seem to pay the one that is not known yet shows what it is worth.
      const auto precedence = [this](const Offer& of) {
        return std::pair(!is_known(of.model), of.gain);
      };
      if (!best || precedence(offer) > precedence(*best)) best = std::move(offer);
    } else {
      refused.push_back(std::move(offer));
    }
  }
  if (best) return best;
  for (Offer& offer : refused) {
    // Where texts are better now, or reading is not worth it any more, nothing is to be learnt.
    if (gain_of(offer, request, worth, worth.n_requests, kMostLevels, Beside::kNothing) > 0) continue;
    const int pause = std::min(2 * trials_[offer.model].pause, kMaxPause);
    if (is_time_to_try(offer, request, worth))
      return tried(std::move(offer), std::max(pause, kFirstPause));
  }
  return std::nullopt;
}

// An offer supposes that all requests draft. Where fewer do, their passes cost each of them more.
void ModelChoice::withdraw(std::span<const PlanJob> jobs, std::span<std::optional<Offer>> offers,
                           const PassWorth& worth) const {
  for (bool is_settled = false; !is_settled;) {
    is_settled = true;
    for (size_t i = 0; i < jobs.size(); ++i) {
      std::optional<Offer>& offer = offers[i];
      if (!offer || offer->is_trial) continue;
      const auto shares = [&](const std::optional<Offer>& other) {
        return other && other->model == offer->model && other->plan.layers == offer->plan.layers;
      };
      const auto n_sharing = static_cast<int>(std::ranges::count_if(offers, shares));
      if (n_sharing == worth.n_requests) continue;
      if (gain_of(*offer, *jobs[i].request, worth, n_sharing) > 0) continue;
      offer.reset();
      is_settled = false;
    }
  }
}

// In tokens: what drafting on brings beside what texts propose, less what it costs. The passes that
// draft are shared by `n_sharing` requests; the one that verifies by all, which are thought to have
// drafted alike.
double ModelChoice::gain_of(const Offer& offer, const RequestPlan& request, const PassWorth& worth,
                            int n_sharing, int n_most, Beside beside) const {
  const ProposedTree& proposed = request.proposed;
  const bool is_begun = !proposed.spine.empty();
  const int32_t end = is_begun ? proposed.spine.back() : kRoot;
  const auto pass_seconds = [&](int n_tokens) {
    return costs_.rows(worth.n_rows + worth.n_requests * n_tokens) / worth.n_requests +
           costs_.attention(n_tokens + 1, request.n_context());
  };
  const int depth = proposed.tree.depth(end);
  const double price = (is_begun ? 1 : kStartMargin) * worth.tokens_per_second;
  std::array<double, kMostLevels + 1> costs;
  for (size_t n = 0; n < costs.size(); ++n) costs[n] = price * pass_seconds(depth + static_cast<int>(n));
  const double token_seconds =
      drafters_.models[offer.model]->token_seconds(offer.plan, request.n_context(), n_sharing) /
      n_sharing;
  const ChainPrices prices{.token = price * token_seconds, .rows = row_prices(costs)};
  TextLevels texts;
  if (beside == Beside::kTexts) add_levels(proposed, request.chances, end, prices.rows, texts);
  const DraftedBehind behind =
      is_begun ? behind_token(proposed.tree[end].probability) : DraftedBehind::kText;
  const double reached = is_begun ? request.chances[static_cast<size_t>(end)] : 1;
  return value_of_drafting(acceptance_.outlook(offer.model, request.acceptance, offer.plan.agreement),
                           behind, reached, texts, prices, n_most);
}

bool ModelChoice::is_known(size_t model) const {
  return acceptance_.n_known(model) >= kKnownTokens;
}

bool ModelChoice::may_read(const Offer& offer, const RequestPlan& request,
                           const PassWorth& worth) const {
  const RequestModelDrafter& drafter = *request.models[offer.model];
  const double seconds = drafter.seconds_to_read();
  if (seconds <= 0) return true;
  if (!is_known(offer.model)) {
    return seconds <= kStake * drafter.n_expected() * worth.plain_seconds;
  }
  const auto& [promised, n_promises] = request.promises[offer.model];
  const double gain = promised / (n_promises + kDoubtfulSteps);
  // All requests wait while one reads.
  return gain * drafter.n_expected() / (2 + gain) > kReadMargin * worth.tokens_per_second * seconds;
}

bool ModelChoice::is_time_to_try(Offer& offer, const RequestPlan& request, const PassWorth& worth) {
  Trials& trials = trials_[offer.model];
  if (trials.pause == 0) trials.pause = kFirstPause;
  const double stake = worth.n_requests > 1 ? kSharedStake : kStake;
  trials.saved_seconds += stake * worth.plain_seconds / worth.n_requests;
  offer.trial_seconds =
      request.models[offer.model]->seconds_to_read() +
      kTryTokens * drafters_.models[offer.model]->token_seconds(offer.plan, request.n_context(), 1);
  ++trials.n_refusals;
  return !trials.is_granted && trials.n_refusals > trials.pause &&
         offer.trial_seconds <= trials.saved_seconds;
}

ModelChoice::Offer ModelChoice::tried(Offer offer, int pause) {
  Trials& trials = trials_[offer.model];
  trials.n_refusals = 0;
  trials.pause = pause;
  trials.is_granted = true;
  offer.is_trial = true;
  return offer;
}

}  // namespace forerun
