#include "draft/self.h"

#include "core/check.h"
#include "model/scratch_guard.h"

namespace forerun {

class SelfMethod::SelfDrafter final : public ChainDrafter {
 public:
  explicit SelfDrafter(SelfMethod& method) : ChainDrafter(method, method.control_), method_(method) {}

  void attach(const RequestView& request) override {
    ChainDrafter::attach(request);
    chooser_ = method_.selector_->begin(request);
  }
  void finish() override { chooser_->finish(); }

  std::optional<DraftPlan> plan(const DraftJob& job) {
    const auto chosen = chooser_->plan();
    has_layers_ = chosen.has_value();
    return chosen ? gated(*chosen, job) : std::nullopt;
  }
  // What layers brought that are not chosen any more says nothing.
  double expected_rate(int n_requests) const override {
    return has_layers_ ? ChainDrafter::expected_rate(n_requests) : 0;
  }

 private:
  void observe_chain(const ChainOutcome& outcome) override { chooser_->observe(outcome); }

  SelfMethod& method_;
  std::unique_ptr<LayerChooser> chooser_;
  bool has_layers_ = false;  // when they were asked for last
};

SelfMethod::SelfMethod(const ChainOptions& options, Executor& executor,
                       std::unique_ptr<LayerSelector> selector, DraftControl control)
    : options_(options),
      executor_(executor),
      selector_(std::move(selector)),
      control_(std::move(control)),
      grower_(options, executor, control_) {}

SelfMethod::~SelfMethod() = default;

std::unique_ptr<Drafter> SelfMethod::begin(std::span<const TokenId> /*prompt*/) {
  return std::make_unique<SelfDrafter>(*this);
}

void SelfMethod::draft(std::span<const DraftJob> jobs) {
  std::vector<ScratchGuard> guards;
  for (const DraftJob& job : jobs) {
    auto& drafter = static_cast<SelfDrafter&>(*job.drafter);
    const auto plan = drafter.plan(job);
    if (!plan) continue;
    const RequestView& request = drafter.request();
    guards.emplace_back(executor_.cells(), request.sequence());
    grower_.begin({.drafter = &drafter,
                   .job = &job,
                   .plan = *plan,
                   .sequence = request.sequence(),
                   .unread = request.text().last(1)});
  }
  grower_.run();
}

}  // namespace forerun
