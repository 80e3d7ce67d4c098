#include "plan/cost_planner.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/check.h"

namespace forerun {
namespace {

// Of a text drafter's tree. More than ever pay: choosing is cheaper than looking again.
constexpr int kTextNodes = 48;
// Fewer requests are looked up before another thread is awake.
constexpr size_t kWorthSharing = 4;
// How much more than its row costs a node must bring: estimates are rough.
constexpr double kMargin = 1.03;
// What is learnt from fewer is not worth keeping.
constexpr int64_t kEnoughTokens = 100;

// How many of the tokens that a pass gave to a text were drafted from datastores.
int count_from_stores(const DraftTree& tree, std::span<const TokenId> tokens) {
  int n = 0;
  std::optional<int32_t> at = kRoot;
  // The last one is the model's own.
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    at = tree.find_child(*at, tokens[i]);
    if (!at) break;
    n += tree[*at].source == DraftSource::kDatastore ? 1 : 0;
  }
  return n;
}

}  // namespace

CostPlanner::CostPlanner(DrafterSet given, const PassCosts& costs, TreeSize largest, ShareOut share_out,
                         std::function<double()> now)
    : Planner(std::move(given), std::move(largest)),
      costs_(costs),
      share_out_(std::move(share_out)),
      now_(std::move(now)),
      models_(drafters(), costs, acceptance_, now_) {
  // The last bit is that of what callers expect.
  CHECK(drafters().texts.size() < kMaxTextDrafters && drafters().models.size() <= kMaxModelDrafters);
}

void CostPlanner::fill(std::span<const PlanJob> jobs, const PassLoad& load) {
  settle();
  worth_ = {.n_requests = load.n_decoding, .n_rows = load.n_decoding + load.n_prompt_rows};
  worth_.plain_seconds = costs_.rows(load.n_decoding);
  // Requests that others plan for get a token each.
  double speed = load.n_decoding - static_cast<double>(jobs.size());
  for (const PlanJob& job : jobs) {
    worth_.plain_seconds += costs_.attention(1, job.request->n_context());
    // Text without drafts is always to be had.
    speed += std::max(1.0, job.request->speed.speedup(usual_speed_.speedup(1)));
    job.request->is_planned = true;
  }
  worth_.tokens_per_second = speed / worth_.plain_seconds;
  propose_texts(jobs);
  models_.draft(jobs, worth_);
  for (const PlanJob& job : jobs)
    AcceptanceModel::propose(job.request->proposed, job.request->acceptance);
  choose(jobs);
}

void CostPlanner::propose_texts(std::span<const PlanJob> jobs) {
  for (const PlanJob& job : jobs) {
    job.request->proposed.clear();
    job.request->chances.clear();
  }
  if (!asks_texts_) return;
  const double begin = now_();
  for (const PlanJob& job : jobs) {
    for (const auto& drafter : job.request->given)
      add_proposals(*drafter, job, text_bit(kMaxTextDrafters - 1));
  }
  const double searched = now_();
  const auto look_up = [&](size_t i) {
    RequestPlan& request = *jobs[i].request;
    for (size_t text = 0; text < request.texts.size(); ++text)
      add_proposals(*request.texts[text], jobs[i], text_bit(text));
    acceptance_.estimate(request.proposed, request.acceptance, request.chances);
  };
  if (jobs.size() < kWorthSharing) {
    one_after_other(jobs.size(), look_up);
  } else {
    share_out_(jobs.size(), look_up);
  }
  const double end = now_();
  search_seconds_ += end - searched;
  lookup_seconds_ += end - begin;
}

void CostPlanner::add_proposals(RequestDrafter& drafter, const PlanJob& job, uint8_t bit) const {
  RequestPlan& request = *job.request;
  request.looked_up.clear();
  drafter.draft(
      {.max_nodes = kTextNodes, .max_depth = job.limits.max_depth, .from_stores = asks_stores_},
      request.looked_up);
  request.proposed.tree.merge(request.looked_up, bit);
}

void CostPlanner::choose(std::span<const PlanJob> jobs) {
  const int n_fixed = list_candidates(jobs);
  const size_t n_best = n_worth_verifying(jobs, n_fixed);
  for (size_t k = 0; k < n_best; ++k) {
    keep_[candidates_[k].job][static_cast<size_t>(candidates_[k].node)] = true;
  }
  for (size_t i = 0; i < jobs.size(); ++i) {
    RequestPlan& request = *jobs[i].request;
    const bool is_drawn = request.drafted.has_distributions();
    *jobs[i].tree = is_drawn ? request.drafted : request.proposed.tree;
    if (!is_drawn) jobs[i].tree->prune(keep_[i]);
  }
}

int CostPlanner::list_candidates(std::span<const PlanJob> jobs) {
  candidates_.clear();
  keep_.resize(std::max(keep_.size(), jobs.size()));
  int n_fixed = worth_.n_rows;
  for (size_t i = 0; i < jobs.size(); ++i) {
    RequestPlan& request = *jobs[i].request;
    const DraftTree& tree = request.proposed.tree;
    keep_[i].assign(static_cast<size_t>(tree.size()), false);
    // A drawn token that is dropped for being unlikely is lost to the text: rules that
    // compare distributions take it for one that was never drawn.
    if (request.drafted.has_distributions()) {
      n_fixed += request.drafted.size();
      continue;
    }
    const bool is_chain = jobs[i].limits.is_chain;
    const auto path = is_chain ? tree.likeliest_path(request.chances) : std::vector<bool>{};
    for (int32_t node = 0; node < tree.size(); ++node) {
      // What ends the answer is found out without a row of its own, and nothing follows it.
      const int32_t parent = tree[node].parent;
      const bool is_behind_end = parent != kRoot && request.chances[static_cast<size_t>(parent)] == 0;
      if (is_behind_end || request.request().ends_answer(tree[node].token)) {
        request.chances[static_cast<size_t>(node)] = 0;
        continue;
      }
      if (is_chain && !path[static_cast<size_t>(node)]) continue;
      candidates_.push_back(
          {.chance = request.chances[static_cast<size_t>(node)], .job = i, .node = node});
    }
  }
  // Parents before children where chances are equal.
  std::ranges::sort(candidates_, [](const Candidate& a, const Candidate& b) {
    if (a.chance != b.chance) return a.chance > b.chance;
    return a.job != b.job ? a.job < b.job : a.node < b.node;
  });
  // No tree is larger than its request has room for.
  n_kept_.assign(jobs.size(), 0);
  std::erase_if(candidates_, [&](const Candidate& candidate) {
    return ++n_kept_[candidate.job] > jobs[candidate.job].limits.max_nodes;
  });
  return n_fixed;
}

// A child's chance is never above its parent's, so that every beginning of the list is a forest.
size_t CostPlanner::n_worth_verifying(std::span<const PlanJob> jobs, int n_fixed) {
  n_kept_.assign(jobs.size(), 0);
  const double price = kMargin * worth_.tokens_per_second;
  const double first = costs_.rows(n_fixed);
  double expected = 0, attention = 0, best = 0;
  size_t n_best = 0;
  for (size_t k = 0; k < candidates_.size(); ++k) {
    const Candidate& candidate = candidates_[k];
    const PlanJob& job = jobs[candidate.job];
    const int n_rows = ++n_kept_[candidate.job];
    attention += costs_.attention(n_rows + 1, job.request->n_context()) -
                 costs_.attention(n_rows, job.request->n_context());
    expected += candidate.chance;
    const double seconds = costs_.rows(n_fixed + static_cast<int>(k) + 1) - first + attention;
    const double gain = expected - price * seconds;
    if (gain > best) {
      best = gain;
      n_best = k + 1;
    }
  }
  return n_best;
}

void CostPlanner::observe(const PassCost& cost) {
  const int n_requests = cost.load.n_decoding;
  const int n_rows = cost.n_rows - cost.load.n_prompt_rows;
  // As costs are known: what else the machine does says nothing of drafts.
  const auto seconds = [&](int n) {
    return costs_.rows(n) + costs_.attention_of_all(n, n_requests, cost.n_context);
  };
  last_ = {.seconds = seconds(n_rows) + cost.draft_seconds,
           .plain_seconds = seconds(n_requests),
           .n_requests = n_requests};
}

void CostPlanner::append(RequestPlan& request, std::span<const TokenId> tokens) {
  const auto n_tokens = static_cast<int>(tokens.size());
  if (std::exchange(request.is_planned, false)) {
    const double n_plain = last_.seconds / last_.plain_seconds;
    request.speed.add(n_tokens, n_plain);
    usual_speed_.add(n_tokens, n_plain);
    last_.n_tokens += n_tokens;
    ++last_.n_planned;
    last_.n_from_stores += count_from_stores(request.proposed.tree, tokens);
  }
  acceptance_.observe(tokens, request.acceptance);
  n_tokens_ += n_tokens;
  const double begin = now_();
  Planner::append(request, tokens);
  lookup_seconds_ += now_() - begin;
}

Learnt CostPlanner::learnt() const {
  if (n_tokens_ < kEnoughTokens) return {};
  Learnt learnt{.acceptance = acceptance_.learnt()};
  for (const auto& model : drafters().models) learnt.models.push_back(model->learnt());
  return learnt;
}

void CostPlanner::restore(const Learnt& learnt) {
  if (!acceptance_.restore(learnt.acceptance) || learnt.models.size() != drafters().models.size())
    return;
  for (size_t i = 0; i < learnt.models.size(); ++i) drafters().models[i]->restore(learnt.models[i]);
}

// Of the pass before this one, whose tokens are all known now.
void CostPlanner::settle() {
  if (asks_texts_ && last_.n_tokens > 0) {
    const auto passes = [&](double seconds) { return seconds / last_.plain_seconds; };
    const auto per_request = [&](int n) { return static_cast<double>(n) / last_.n_requests; };
    if (asks_stores_) {
      of_stores_.add(passes(search_seconds_), per_request(last_.n_from_stores));
    } else {
      // Those that others planned for got a token each.
      const int n_all = last_.n_tokens + last_.n_requests - last_.n_planned;
      of_texts_.add(passes(lookup_seconds_),
                    per_request(n_all) - passes(last_.seconds - lookup_seconds_));
    }
  }
  last_.n_tokens = last_.n_planned = last_.n_from_stores = 0;
  search_seconds_ = lookup_seconds_ = 0;
  asks_stores_ = of_stores_.wants_drafts();
  asks_texts_ = asks_stores_ || of_texts_.wants_drafts();
}

}  // namespace forerun
