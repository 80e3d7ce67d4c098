#include "engine/step_record.h"

#include <algorithm>
#include <utility>

namespace forerun {
namespace {

// Rows of prompts that a pass may have however long they take, so that reading goes on.
constexpr int kLeastPromptRows = 16;
// How fast the price of a prompt's row is learnt.
constexpr double kPromptRate = 0.3;

}  // namespace

int StepRecord::n_prompt_rows_within(double seconds, int room) const {
  if (prompt_row_seconds_ == 0) return room;
  const double n = seconds / prompt_row_seconds_;
  return n < room ? std::max(std::min(kLeastPromptRows, room), static_cast<int>(n)) : room;
}

void StepRecord::observe(const ComputedPass& pass) {
  pass_seconds_ = pass.seconds;
  plain_seconds_.reset();
  counts_saved_ = false;
  const int n_prompt_rows = pass.n_rows - pass.n_tree_rows;
  const double prompt_share = static_cast<double>(n_prompt_rows) / pass.n_rows;
  if (n_prompt_rows >= kLeastPromptRows) {
    const double row_seconds = pass.seconds / pass.n_rows;
    prompt_row_seconds_ +=
        (prompt_row_seconds_ == 0 ? 1.0 : kPromptRate) * (row_seconds - prompt_row_seconds_);
  }
  {
    const std::scoped_lock lock(mutex_);
    ++statistics_.n_passes;
    statistics_.n_longest = std::max(statistics_.n_longest, pass.n_longest);
    statistics_.n_rows += pass.n_rows;
    statistics_.n_decoding += pass.n_decoding;
    statistics_.n_prompt_tokens += n_prompt_rows;
    statistics_.prompt_seconds += pass.seconds * prompt_share;
    statistics_.predicted_seconds += pass.seconds * (1 - prompt_share);
  }
  if (costs_ == nullptr) return;
  if (pass.n_decoding == 0) {
    if (pass.was_usual) costs_->observe_prompt(pass.n_rows, pass.seconds);
  } else if (n_prompt_rows == 0) {
    counts_saved_ = true;
    if (pass.n_rows > pass.n_decoding) {
      plain_seconds_ =
          costs_->pass(1, pass.n_context / pass.n_decoding, pass.n_decoding) / pass.n_decoding;
    }
    if (pass.was_usual) {
      costs_->observe({.n_rows = pass.n_rows,
                       .n_requests = pass.n_decoding,
                       .n_context = pass.n_context,
                       .seconds = pass.seconds});
    }
  }
}

void StepRecord::count_saved(int64_t n_tokens) {
  const double draft_seconds = std::exchange(draft_seconds_, 0.0);
  if (!counts_saved_) return;
  double saved = -draft_seconds;
  if (plain_seconds_) saved += static_cast<double>(n_tokens) * *plain_seconds_ - pass_seconds_;
  const std::scoped_lock lock(mutex_);
  statistics_.saved_seconds += saved;
}

void StepRecord::count_past(ActiveRequest& active, const Generation& result) {
  if (std::exchange(active.is_counted, true)) return;
  past_speculation_.add(result.speculation);
  n_past_predicted_ += result.timings.n_predicted;
  const std::scoped_lock lock(mutex_);
  statistics_.n_cached_tokens += result.timings.n_cached;
}

void StepRecord::count_suspended() {
  const std::scoped_lock lock(mutex_);
  ++statistics_.n_suspended;
}

void StepRecord::update(std::span<const std::unique_ptr<ActiveRequest>> all, const KvCells& cells) {
  const auto n_running = static_cast<int>(
      std::ranges::count_if(all, [](const auto& active) { return active->slot != nullptr; }));
  SpeculationStatistics speculation = past_speculation_;
  int64_t n_predicted = n_past_predicted_;
  for (const auto& active : all) {
    speculation.add(active->request->result().speculation);
    n_predicted += active->request->result().timings.n_predicted;
  }
  const std::scoped_lock lock(mutex_);
  statistics_.speculation = std::move(speculation);
  statistics_.n_predicted_tokens = n_predicted;
  statistics_.n_running = n_running;
  statistics_.n_waiting = static_cast<int>(all.size()) - n_running;
  statistics_.n_cells = cells.n_cells();
  statistics_.n_cells_used = cells.n_cells() - cells.n_free();
}

EngineStatistics StepRecord::statistics() const {
  const std::scoped_lock lock(mutex_);
  return statistics_;
}

}  // namespace forerun
