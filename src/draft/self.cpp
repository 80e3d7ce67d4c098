#include "draft/self.h"

#include "core/check.h"
#include "model/scratch_guard.h"

namespace forerun {

class SelfMethod::SelfDrafter final : public ChainDrafter {
 public:
  explicit SelfDrafter(SelfMethod& method)
      : ChainDrafter(method, method.options_, method.control_), method_(method) {}

  void attach(const RequestView& request) override {
    ChainDrafter::attach(request);
    chooser_ = method_.selector_->begin(request);
  }
  void finish() override { chooser_->finish(); }

  LayerChooser& chooser() { return *chooser_; }

 private:
  void observe_chain(const ChainOutcome& outcome) override { chooser_->observe(outcome); }

  SelfMethod& method_;
  std::unique_ptr<LayerChooser> chooser_;
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
    auto plan = drafter.chooser().plan();
    if (plan) plan = drafter.gated(*plan, job.rival_rate);
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
