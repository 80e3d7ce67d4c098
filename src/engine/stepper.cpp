#include "engine/stepper.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/error.h"
#include "core/stopwatch.h"

namespace forerun {
namespace {

// The model's tokens behind the nodes of a tree, drawn when asked for.
class PassTargets final : public TargetTokens {
 public:
  PassTargets(const RunningRequest& request, const DraftTree& tree, const PassResult& result,
              size_t first_row, SamplerScratch& scratch)
      : request_(request), tree_(tree), result_(result), first_row_(first_row), scratch_(scratch) {}

  TokenId after(int32_t node) const override {
    SamplerState state = request_.state();
    accept_path(node, state);
    const Position position{static_cast<int32_t>(request_.text().size()) + tree_.depth(node)};
    return request_.sampler().sample(result_.logits(first_row_ + static_cast<size_t>(node + 1)), state,
                                     position, scratch_);
  }

 private:
  void accept_path(int32_t node, SamplerState& state) const {
    if (node == kRoot) return;
    accept_path(tree_[node].parent, state);
    state.accept(tree_[node].token);
  }

  const RunningRequest& request_;
  const DraftTree& tree_;
  const PassResult& result_;
  size_t first_row_;
  SamplerScratch& scratch_;
};

}  // namespace

Stepper::Stepper(Executor& executor, const Vocabulary& vocabulary, const StepperOptions& options,
                 PassCosts* costs)
    : executor_(executor),
      vocabulary_(vocabulary),
      options_(options),
      costs_(costs),
      slots_(executor, options.n_slots, options.n_context) {
  CHECK(options.n_slots <= executor.max_rows());
}

RequestId Stepper::submit(Request request, const Speculation& speculation) {
  auto active = std::make_unique<Active>();
  active->request = std::make_unique<RunningRequest>(
      std::move(request), vocabulary_,
      RunningRequest::Limits{.n_vocab = executor_.model().config().n_vocab,
                             .n_context = options_.n_context,
                             .n_trained = executor_.model().config().n_ctx_train});
  active->id = RequestId{n_submitted_++};
  active->speculation = speculation;
  active_.push_back(std::move(active));
  return active_.back()->id;
}

void Stepper::cancel(RequestId request) {
  for (const auto& active : active_) {
    if (active->id == request) active->is_cancelled = true;
  }
}

void Stepper::discard(RequestId request) {
  results_.erase(request);
  std::erase_if(active_, [&](const auto& active) {
    if (active->id != request) return false;
    release(*active);
    return true;
  });
}

std::optional<RequestResult> Stepper::take(RequestId request) {
  auto node = results_.extract(request);
  if (node.empty()) return std::nullopt;
  return std::move(node.mapped());
}

int Stepper::n_reading() const {
  return static_cast<int>(std::count_if(active_.begin(), active_.end(),
                                        [](const auto& active) { return !active->is_decoding(); }));
}

double Stepper::share_read(RequestId request) const {
  for (const auto& active : active_) {
    if (active->id != request || active->is_decoding()) continue;
    const size_t n_read = active->slot == nullptr ? 0 : active->slot->text.size();
    return static_cast<double>(n_read) / static_cast<double>(active->request->prompt().size());
  }
  return 1.0;
}

template <typename Work>
void Stepper::for_each_active(const Work& work) {
  // By index: callbacks may submit more.
  for (size_t i = 0; i < active_.size();) {
    Active& active = *active_[i];
    try {
      work(active);
    } catch (...) {
      end(active, std::current_exception());
    }
    if (active.request != nullptr) {
      ++i;
    } else {
      active_.erase(active_.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

bool Stepper::step() {
  end_cancelled();
  admit();
  if (active_.empty()) return false;
  try {
    draft();
    fill_pass();
    forward();
  } catch (...) {
    forget_pass();
    throw;
  }
  for_each_active([this](Active& active) {
    if (active.n_rows > 0) advance(active);
  });
  return true;
}

void Stepper::end_cancelled() {
  for_each_active([this](Active& active) {
    if (!active.is_cancelled && !active.request->is_cancelled()) return;
    end(active, active.request->finish(StopReason::kCancelled));
  });
}

void Stepper::admit() {
  bool has_room = true;
  for_each_active([&](Active& active) {
    if (active.slot != nullptr || !has_room) return;
    active.slot = slots_.acquire(active.request->prompt());
    has_room = active.slot != nullptr;
    if (has_room) admit(active);
  });
}

void Stepper::admit(Active& active) {
  const auto prompt = active.request->prompt();
  active.phase = {};
  Timings& timings = active.request->timings();
  timings.n_cached = static_cast<int>(active.slot->text.size());
  timings.n_prompt = static_cast<int>(prompt.size()) - timings.n_cached;
  Planner* planner = active.speculation.planner;
  active.request->begin({.sequence = active.slot->sequence,
                         .compares_distributions = compares_distributions(active.speculation.accept),
                         .wants_prompt_state = planner != nullptr && planner->wants_prompt_state()});
  if (planner == nullptr) return;
  active.plan = planner->begin(*active.request);
  active.request->speculation().draft_ms += active.phase.ms();
}

void Stepper::draft() {
  load_ = {};
  planned_.clear();
  size_t n_unread = 0;
  for (const auto& active : active_) {
    active->tree.clear();
    if (active->is_planned()) planned_.push_back(active.get());
    if (active->is_decoding()) {
      ++load_.n_decoding;
    } else if (active->slot != nullptr) {
      n_unread += active->request->prompt().size() - active->slot->text.size();
    }
  }
  const int room = executor_.max_rows() - load_.n_decoding;
  load_.n_prompt_rows = static_cast<int>(std::min(n_unread, static_cast<size_t>(room)));
  const auto planner_of = [](const Active* active) { return active->speculation.planner; };
  std::ranges::stable_sort(planned_, {}, planner_of);
  for (std::span<Active* const> left = planned_; !left.empty();) {
    const auto other = std::ranges::find_if(
        left, [&](const Active* active) { return planner_of(active) != planner_of(left.front()); });
    const auto n = static_cast<size_t>(other - left.begin());
    draft(left.first(n));
    left = left.subspan(n);
  }
}

DraftLimits Stepper::limits_of(const Active& active) const {
  const int share = (executor_.max_rows() - load_.n_decoding) / load_.n_decoding;
  // The text's last token is a row too, and what lies past the end of the context or of the
  // answer cannot be accepted.
  const int n_committed = static_cast<int>(active.slot->text.size());
  const int room = options_.n_context - n_committed - 1;
  DraftLimits limits{.max_nodes = std::min({share, room, kLargestTree}),
                     .max_depth = std::min(room, active.request->n_left() - 1)};
  // Where bits depend on a pass's shape, rows give those of plain decoding in a chain that
  // leaves the shape as it is.
  if (is_exact(active)) {
    limits.is_chain = true;
    limits.max_depth =
        std::min({limits.max_depth, executor_.min_rows() - 1, executor_.n_until_next_span(n_committed)});
  }
  return limits;
}

void Stepper::draft(std::span<Active* const> requests) {
  const Stopwatch watch;
  jobs_.clear();
  for (Active* active : requests) {
    const DraftLimits limits = limits_of(*active);
    if (limits.max_nodes <= 0 || limits.max_depth <= 0) continue;
    jobs_.push_back({.request = active->plan.get(), .limits = limits, .tree = &active->tree});
  }
  if (!jobs_.empty()) requests.front()->speculation.planner->plan(jobs_, load_);
  for (const PlanJob& job : jobs_) {
    CHECK(job.tree->size() <= job.limits.max_nodes && job.tree->max_depth() <= job.limits.max_depth);
  }
  draft_seconds_ += watch.seconds();
  const double ms = watch.ms() / static_cast<double>(requests.size());
  for (Active* active : requests) active->request->speculation().draft_ms += ms;
}

void Stepper::fill_pass() {
  pass_.rows.clear();
  pass_.hidden_at.clear();
  nodes_.clear();
  for (const auto& active : active_) {
    active->n_rows = 0;
    if (active->is_decoding()) add_tree_rows(*active);
  }
  for (const auto& active : active_) {
    if (active->slot == nullptr || active->is_decoding()) continue;
    const auto max_rows = static_cast<size_t>(executor_.max_rows());
    const size_t n_read = active->slot->text.size();
    // Parts of a prompt end on a fixed grid of positions, so that it is computed the same
    // way however much of it was there already.
    const size_t n = std::min({active->request->prompt().size() - n_read, max_rows - n_read % max_rows,
                               max_rows - pass_.rows.size()});
    if (n > 0) add_prompt_rows(*active, n);
  }
}

void Stepper::add_tree_rows(Active& active) {
  KvCells& cells = executor_.cells();
  const SequenceId sequence = active.slot->sequence;
  active.first_row = pass_.rows.size();
  active.n_rows = 1 + static_cast<size_t>(active.tree.size());
  const NodeId root = cells.extend(sequence).value();
  nodes_.push_back(root);
  pass_.rows.push_back(
      {.sequence = sequence, .node = root, .token = active.request->text().back(), .logits = true});
  for (const DraftNode& node : active.tree.nodes()) {
    const NodeId parent = nodes_[active.first_row + static_cast<size_t>(node.parent + 1)];
    nodes_.push_back(cells.extend(sequence, parent).value());
    pass_.rows.push_back(
        {.sequence = sequence, .node = nodes_.back(), .token = node.token, .logits = true});
  }
}

void Stepper::add_prompt_rows(Active& active, size_t n) {
  const auto prompt = active.request->prompt();
  const size_t n_read = active.slot->text.size();
  active.first_row = pass_.rows.size();
  active.n_rows = n;
  const bool wants_state = active.request->prompt_state() != nullptr;
  if (wants_state) pass_.hidden_at.assign(1, 2 * executor_.model().config().n_layers);
  std::optional<NodeId> parent;
  for (size_t i = n_read; i < n_read + n; ++i) {
    parent = executor_.cells().extend(active.slot->sequence, parent);
    nodes_.push_back(parent.value());
    pass_.rows.push_back({.sequence = active.slot->sequence,
                          .node = *parent,
                          .token = prompt[i],
                          .logits = i + 1 == prompt.size(),
                          .hidden = wants_state});
  }
}

void Stepper::forward() {
  const Stopwatch watch;
  pass_result_ = &executor_.forward(pass_);
  pass_seconds_ = watch.seconds();
  watch_cost();
}

void Stepper::watch_cost() {
  const auto n_rows = static_cast<int>(pass_.rows.size());
  if (load_.n_decoding == 0) {
    if (costs_ != nullptr) costs_->observe_prompt(n_rows, pass_seconds_);
    return;
  }
  int n_context = 0;
  for (const auto& active : active_) {
    if (active->is_decoding()) n_context += static_cast<int>(active->request->text().size());
  }
  if (costs_ != nullptr && load_.n_prompt_rows == 0) {
    costs_->observe({.n_rows = n_rows,
                     .n_requests = load_.n_decoding,
                     .n_context = n_context,
                     .seconds = pass_seconds_});
  }
  const PassCost cost{.load = load_,
                      .n_rows = n_rows,
                      .n_context = n_context,
                      .draft_seconds = std::exchange(draft_seconds_, 0.0)};
  const Planner* told = nullptr;
  for (const Active* active : planned_) {
    if (active->speculation.planner == told) continue;
    active->speculation.planner->observe(cost);
    told = active->speculation.planner;
  }
}

void Stepper::forget_pass() {
  for (const auto& active : active_) {
    if (active->slot != nullptr) executor_.cells().rollback(active->slot->sequence);
  }
}

void Stepper::advance(Active& active) {
  auto reason = active.is_decoding() ? after_tree(active) : after_prompt(active);
  const bool is_full = static_cast<int>(active.slot->text.size()) == options_.n_context;
  if (!reason && is_full) reason = StopReason::kContextFull;
  if (reason) end(active, active.request->finish(*reason));
}

std::optional<StopReason> Stepper::after_prompt(Active& active) {
  RunningRequest& request = *active.request;
  std::vector<TokenId>& text = active.slot->text;
  executor_.cells().commit(active.slot->sequence, {&nodes_[active.first_row], active.n_rows});
  const auto read = request.prompt().subspan(text.size(), active.n_rows);
  text.insert(text.end(), read.begin(), read.end());
  if (request.prompt_state() != nullptr) {
    for (size_t row = active.first_row; row < active.first_row + active.n_rows; ++row) {
      request.add_prompt_state(pass_result_->hidden(0, row));
    }
  }
  if (text.size() < request.prompt().size()) return std::nullopt;
  request.timings().prompt_ms = active.phase.ms();
  active.phase = {};
  if (request.n_left() == 0) return StopReason::kLimit;
  const auto logits = pass_result_->logits(active.first_row + active.n_rows - 1);
  const Position position{static_cast<int32_t>(request.text().size())};
  const TokenId token = request.sampler().sample(logits, request.state(), position, sampler_scratch_);
  const auto reason = request.take(token, logits, std::nullopt, logprob_scratch_);
  if (!reason && active.plan != nullptr) active.speculation.planner->append(*active.plan, {&token, 1});
  return reason;
}

std::optional<StopReason> Stepper::after_tree(Active& active) {
  RunningRequest& request = *active.request;
  const Stopwatch watch;
  const auto logits = [&](int32_t node) {
    return pass_result_->logits(active.first_row + static_cast<size_t>(node + 1));
  };
  const Position position{static_cast<int32_t>(request.text().size())};
  verify({.tree = active.tree,
          .logits = logits,
          .sampler = request.sampler(),
          .state = request.state(),
          .position = position},
         active.speculation.accept, sampler_scratch_, verdict_);
  if (active.plan != nullptr && !active.tree.empty()) {
    active.plan->observe(active.tree, PassTargets(request, active.tree, *pass_result_, active.first_row,
                                                  sampler_scratch_));
  }

  // The accepted tokens become text, one after the other, until one of them ends it.
  const size_t n_before = request.text().size();
  int64_t n_given = 0;
  std::optional<StopReason> reason;
  path_.assign(1, nodes_[active.first_row]);
  int32_t at = kRoot;
  for (const int32_t node : verdict_.path) {
    ++n_given;
    reason =
        request.take(active.tree[node].token, logits(at), active.tree[node].source, logprob_scratch_);
    if (request.text().size() > n_before + path_.size() - 1) {
      path_.push_back(nodes_[active.first_row + static_cast<size_t>(node + 1)]);
    }
    if (reason) break;
    at = node;
  }
  verdict_.path.resize(path_.size() - 1);
  if (!reason) {
    ++n_given;
    reason = request.take(verdict_.next, logits(at), std::nullopt, logprob_scratch_);
  }

  std::vector<TokenId>& text = active.slot->text;
  executor_.cells().commit(active.slot->sequence, path_);
  const auto committed = request.text().subspan(text.size(), path_.size());
  text.insert(text.end(), committed.begin(), committed.end());
  count(active);
  const auto grown = request.text().subspan(n_before);
  request.speculation().n_tokens += n_given;
  request.speculation().sample_ms += watch.ms();
  if (active.plan != nullptr) {
    const Stopwatch append_watch;
    active.speculation.planner->append(*active.plan, grown);
    request.speculation().draft_ms += append_watch.ms();
    draft_seconds_ += append_watch.seconds();
  }
  return reason;
}

void Stepper::count(Active& active) {
  SpeculationStatistics& statistics = active.request->speculation();
  const DraftTree& tree = active.tree;
  statistics.n_steps += 1;
  statistics.pass_ms +=
      1e3 * pass_seconds_ * static_cast<double>(active.n_rows) / static_cast<double>(pass_.rows.size());
  statistics.by_depth.resize(
      std::max(statistics.by_depth.size(), static_cast<size_t>(tree.max_depth())));
  const auto add = [&](int32_t node, const DraftCounts& counts) {
    statistics.by_source[static_cast<size_t>(tree[node].source)].add(counts);
    statistics.by_depth[static_cast<size_t>(tree.depth(node) - 1)].add(counts);
  };
  for (int32_t node = 0; node < tree.size(); ++node) add(node, {.n_drafted = 1});
  for (const int32_t node : verdict_.tested) add(node, {.n_tested = 1});
  for (const int32_t node : verdict_.path) add(node, {.n_accepted = 1});
  active.request->count_step({.n_drafted = tree.size(),
                              .n_tested = static_cast<int64_t>(verdict_.tested.size()),
                              .n_accepted = static_cast<int64_t>(verdict_.path.size())});
}

void Stepper::end(Active& active, RequestResult result) {
  if (auto* generation = std::get_if<Generation>(&result)) {
    Timings& timings = generation->timings;
    if (active.slot != nullptr && active.is_decoding()) {
      timings.predicted_ms = active.phase.ms();
    } else if (active.slot != nullptr) {  // ended while the prompt was read
      timings.n_prompt = static_cast<int>(active.slot->text.size()) - timings.n_cached;
      timings.prompt_ms = active.phase.ms();
    }
    if (generation->stop_reason != StopReason::kCancelled) {
      if (active.plan != nullptr) active.plan->finish();
      const auto& on_answer = active.speculation.on_answer;
      if (on_answer) on_answer(active.request->prompt(), active.request->answer());
    }
    statistics_.add(generation->speculation);
  }
  release(active);
  results_.emplace(active.id, std::move(result));
}

void Stepper::release(Active& active) {
  active.plan = nullptr;  // it sees the request
  if (active.slot != nullptr) slots_.release(*active.slot);
  active.request = nullptr;
}

}  // namespace forerun
