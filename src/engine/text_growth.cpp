#include "engine/text_growth.h"

#include <algorithm>
#include <utility>

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
    return request_.sampler().sample(result_.view(first_row_ + static_cast<size_t>(node + 1)), state,
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

// The text of the cache gets the next `n` tokens of the request's.
void follow(ActiveRequest& active, size_t n) {
  std::vector<TokenId>& text = active.slot->text;
  const auto more = active.request->text().subspan(text.size(), n);
  text.insert(text.end(), more.begin(), more.end());
}

}  // namespace

void TextGrowth::begin(const PassResult& result, double seconds,
                       std::span<const std::unique_ptr<ActiveRequest>> all) {
  result_ = &result;
  seconds_ = seconds;
  n_given_ = 0;
  verify_all(all);
}

// Drawing from large vocabularies takes long where a pass does not, so threads that wait for the next
// pass share it. What follows a grammar stays here: requests may share that.
void TextGrowth::verify_all(std::span<const std::unique_ptr<ActiveRequest>> all) {
  verified_.clear();
  for (const auto& active : all) {
    if (active->n_rows == 0 || !active->is_decoding()) continue;
    if (active->request->state().constraint() != nullptr) {
      verify_one(*active, sampler_scratch_);
    } else {
      verified_.push_back(active.get());
    }
  }
  if (verified_.size() == 1) return verify_one(*verified_.front(), sampler_scratch_);
  if (verified_.empty()) return;
  thread_scratch_.resize(static_cast<size_t>(executor_.model().helping_device().n_threads()));
  executor_.model().helping_device().share_out(verified_.size(), [&](int thread, size_t i) {
    verify_one(*verified_[i], thread_scratch_[static_cast<size_t>(thread)]);
  });
}

void TextGrowth::verify_one(ActiveRequest& active, SamplerScratch& scratch) const {
  RunningRequest& request = *active.request;
  const Stopwatch watch;
  try {
    verify({.tree = active.tree,
            .logits =
                [&](int32_t node) {
                  return result_->view(active.first_row + static_cast<size_t>(node + 1));
                },
            .sampler = request.sampler(),
            .state = request.state(),
            .position = Position{static_cast<int32_t>(request.text().size())}},
           active.speculation.accept, scratch, active.verdict);
  } catch (...) {
    active.verdict_failure = std::current_exception();
  }
  request.speculation().sample_ms += watch.ms();
}

double TextGrowth::take_draft_seconds() {
  return std::exchange(draft_seconds_, 0.0);
}

std::optional<StopReason> TextGrowth::grow(ActiveRequest& active) {
  const auto reason = active.is_decoding() ? after_tree(active) : after_unread(active);
  Timings& timings = active.request->timings();
  timings.n_predicted = static_cast<int>(active.request->answer().size());
  if (timings.n_predicted > 0) timings.predicted_ms = active.phase.ms();
  if (!reason) active.request->stream();
  return reason;
}

std::optional<StopReason> TextGrowth::after_unread(ActiveRequest& active) {
  RunningRequest& request = *active.request;
  if (request.embedding() != nullptr) add_embedding(active);
  executor_.cells().commit(active.slot->sequence, rows_.nodes(active));
  follow(active, active.n_rows);
  if (!request.answer().empty()) return std::nullopt;  // it goes on where it was
  request.tell_progress(active.slot->text.size(), active.phase.ms());
  if (request.prompt_state() != nullptr) {
    for (size_t row = active.first_row; row < active.first_row + active.n_rows; ++row) {
      request.add_prompt_state(result_->hidden(0, row));
    }
  }
  if (active.n_unread() > 0) return std::nullopt;
  request.timings().prompt_ms = active.phase.ms();
  active.phase = {};
  if (request.n_left() == 0) return StopReason::kLimit;
  const LogitsView logits = result_->view(active.first_row + active.n_rows - 1);
  const Position position{static_cast<int32_t>(request.text().size())};
  const TokenId token = request.sampler().sample(logits, request.state(), position, sampler_scratch_);
  const auto reason = request.take(token, logits, std::nullopt, logprob_scratch_);
  if (!reason) tell(active, {&token, 1});
  return reason;
}

void TextGrowth::add_embedding(ActiveRequest& active) {
  TextEmbedding& embedding = *active.request->embedding();
  const size_t n_read = active.slot->text.size();
  normed_.resize(static_cast<size_t>(executor_.model().config().n_embd));
  for (size_t i = 0; i < active.n_rows; ++i) {
    if (!embedding.wants(n_read + i)) continue;
    final_norm_->apply(result_->hidden(0, active.first_row + i), normed_);
    embedding.add(normed_);
  }
}

std::optional<StopReason> TextGrowth::after_tree(ActiveRequest& active) {
  RunningRequest& request = *active.request;
  const Stopwatch watch;
  const auto logits = [&](int32_t node) {
    return result_->view(active.first_row + static_cast<size_t>(node + 1));
  };
  if (active.verdict_failure) std::rethrow_exception(std::exchange(active.verdict_failure, nullptr));
  Verdict& verdict = active.verdict;
  if (active.plan != nullptr && !active.tree.empty()) {
    active.try_drafting([&] {
      active.plan->observe(
          active.tree, PassTargets(request, active.tree, *result_, active.first_row, sampler_scratch_));
    });
  }

  // The accepted tokens become text, one after the other, until one of them ends it.
  const auto nodes = rows_.nodes(active);
  const size_t n_before = request.text().size();
  int64_t n_given = 0;
  std::optional<StopReason> reason;
  path_.assign(1, nodes[0]);
  int32_t at = kRoot;
  for (const int32_t node : verdict.path) {
    ++n_given;
    reason =
        request.take(active.tree[node].token, logits(at), active.tree[node].source, logprob_scratch_);
    if (request.text().size() > n_before + path_.size() - 1) {
      path_.push_back(nodes[static_cast<size_t>(node + 1)]);
    }
    if (reason) break;
    at = node;
  }
  verdict.path.resize(path_.size() - 1);
  if (!reason) {
    ++n_given;
    reason = request.take(verdict.next, logits(at), std::nullopt, logprob_scratch_);
  }

  executor_.cells().commit(active.slot->sequence, path_);
  follow(active, path_.size());
  count(active);
  request.speculation().n_tokens += n_given;
  n_given_ += n_given;
  request.speculation().sample_ms += watch.ms();
  tell(active, request.text().subspan(n_before));
  return reason;
}

void TextGrowth::tell(ActiveRequest& active, std::span<const TokenId> grown) {
  if (active.plan == nullptr) return;
  const Stopwatch watch;
  active.try_drafting([&] { active.speculation.planner->append(*active.plan, grown); });
  active.request->speculation().draft_ms += watch.ms();
  draft_seconds_ += watch.seconds();
}

void TextGrowth::count(ActiveRequest& active) {
  SpeculationStatistics& statistics = active.request->speculation();
  const DraftTree& tree = active.tree;
  statistics.n_steps += 1;
  statistics.pass_ms +=
      1e3 * seconds_ * static_cast<double>(active.n_rows) / static_cast<double>(rows_.size());
  statistics.by_depth.resize(
      std::max(statistics.by_depth.size(), static_cast<size_t>(tree.max_depth())));
  const auto add = [&](int32_t node, const DraftCounts& counts) {
    statistics.by_source[static_cast<size_t>(tree[node].source)].add(counts);
    statistics.by_depth[static_cast<size_t>(tree.depth(node) - 1)].add(counts);
  };
  for (int32_t node = 0; node < tree.size(); ++node) add(node, {.n_drafted = 1});
  for (const int32_t node : active.verdict.tested) add(node, {.n_tested = 1});
  for (const int32_t node : active.verdict.path) add(node, {.n_accepted = 1});
  active.request->count_step({.n_drafted = tree.size(),
                              .n_tested = static_cast<int64_t>(active.verdict.tested.size()),
                              .n_accepted = static_cast<int64_t>(active.verdict.path.size())});
}

}  // namespace forerun
