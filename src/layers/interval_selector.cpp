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

class IntervalSelector::Chooser final : public RequestLayers {
 public:
  Chooser(IntervalSelector& selector, const RequestView& request)
      : selector_(selector), request_(request) {}

  std::optional<DraftPlan> plan() override {
    const size_t n_text = request_.text().size();
    const auto n_context = static_cast<int>(n_text);
    selector_.time_.begin_step(n_steps_ == 0, selector_.costs_.pass(1, n_context));
    if (selector_.n_pause_ > 0) --selector_.n_pause_;
    if (n_steps_ >= n_until_look_ && selector_.n_pause_ == 0) look(n_text, n_context);
    sizes_[static_cast<size_t>(n_steps_++) % kRecentSteps] = n_text;
    return selector_.plan(n_context);
  }
  void observe(const ChainOutcome& outcome) override { selector_.observe(outcome); }

 private:
  void look(size_t n_text, int n_context) {
    const double expected = std::max(selector_.last_look_seconds_, selector_.look_seconds(n_context));
    const double part = selector_.plan(n_context) ? 1 : kVainPart;
    if (!selector_.time_.allows(expected, part) &&
        !selector_.promises_much(request_, expected, selector_.time_)) {
      return;
    }
    const size_t oldest = sizes_[static_cast<size_t>(n_steps_) % kRecentSteps];
    const RecentText recent{.n_tokens = n_text - oldest, .n_new = n_text - std::max(oldest, n_seen_)};
    const Stopwatch watch;
    bool has_looked = false;
    in_free_cells([&] { has_looked = selector_.look(request_, recent); });
    n_seen_ = n_text;
    selector_.last_look_seconds_ = watch.seconds();
    selector_.time_.use(watch.seconds());
    const bool is_vain = !has_looked || !selector_.plan(n_context);
    selector_.n_vain_ = is_vain ? std::min(selector_.n_vain_ + 1, kMaxDoublings) : 0;
    const int interval = selector_.options_.interval;
    selector_.n_pause_ = is_vain && interval > 1 ? interval << selector_.n_vain_ : 0;
    n_until_look_ = n_steps_ + interval;
  }

  IntervalSelector& selector_;
  const RequestView& request_;
  int n_steps_ = 0;
  int n_until_look_ = kFirstLook;
  std::array<size_t, kRecentSteps> sizes_{};  // of the text at the last steps
  size_t n_seen_ = 0;                         // of the text at the last look
};

std::unique_ptr<RequestLayers> IntervalSelector::begin(const RequestView& request) {
  return std::make_unique<Chooser>(*this, request);
}

}  // namespace forerun
