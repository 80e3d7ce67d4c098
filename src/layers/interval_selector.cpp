#include "layers/interval_selector.h"

#include <algorithm>
#include <array>

#include "layers/block_states.h"

namespace forerun {
namespace {

// The published program looks at the steps 2 to 6 of every 64: by then a request's text is
// no longer its prompt's.
constexpr int kFirstLook = 6;
constexpr size_t kRecentSteps = 5;
// Looks in vain make the next ones rarer, by so many times at most, unless there is one at every step;
// and while there is no plan, looks may take this part of what they may take otherwise.
constexpr int kMaxDoublings = 6;
constexpr double kVainPart = 0.2;

}  // namespace

void IntervalOptions::describe(OptionVisitor& visitor) {
  visitor.visit({"interval", "Steps between two choices"}, interval, {1, 100000});
  visitor.visit({"share", "Share of the time that choosing may take (1: no limit)"}, share, {0.0, 1.0});
}

struct IntervalSelector::Progress {
  const RequestView& request;
  int n_steps = 0;
  int n_until_look = kFirstLook;
  std::array<size_t, kRecentSteps> sizes = {};  // of the text at the last steps
  size_t n_seen = 0;                            // of the text at the last look
};

NextPlan IntervalSelector::begin(const RequestView& request) {
  return [this, progress = Progress{.request = request}]() mutable { return next_plan(progress); };
}

std::optional<DraftPlan> IntervalSelector::next_plan(Progress& progress) {
  const size_t n_text = progress.request.text().size();
  const int n_context = progress.request.n_context();
  time_.begin_step(progress.n_steps == 0, costs_.pass(1, n_context));
  if (n_pause_ > 0) --n_pause_;
  if (progress.n_steps >= progress.n_until_look && n_pause_ == 0) look_at(progress, n_context);
  progress.sizes[static_cast<size_t>(progress.n_steps++) % kRecentSteps] = n_text;
  return plan(n_context);
}

void IntervalSelector::look_at(Progress& progress, int n_context) {
  const double expected = std::max(last_look_seconds_, look_seconds(n_context));
  const double part = plan(n_context) ? 1 : kVainPart;
  if (!time_.allows(expected, part) && !promises_much(progress.request, expected, time_)) return;
  const auto n_text = static_cast<size_t>(n_context);
  const size_t oldest = progress.sizes[static_cast<size_t>(progress.n_steps) % kRecentSteps];
  const RecentText recent{.n_tokens = n_text - oldest,
                          .n_new = n_text - std::max(oldest, progress.n_seen)};
  const Stopwatch watch;
  bool has_looked = false;
  in_free_cells([&] { has_looked = look(progress.request, recent); });
  progress.n_seen = n_text;
  last_look_seconds_ = watch.seconds();
  time_.use(watch.seconds());
  const bool is_vain = !has_looked || !plan(n_context);
  n_vain_ = is_vain ? std::min(n_vain_ + 1, kMaxDoublings) : 0;
  n_pause_ = is_vain && options_.interval > 1 ? options_.interval << n_vain_ : 0;
  progress.n_until_look = progress.n_steps + options_.interval;
}

}  // namespace forerun
