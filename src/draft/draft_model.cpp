#include "draft/draft_model.h"

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "model/foreign_text.h"

namespace forerun {
namespace {

// A draft's first pass reads at most so many tokens of the text; more are read before.
constexpr size_t kMostUnread = 16;
// How fast the usual length of answers is learnt.
constexpr double kAnswerRate = 0.2;

constexpr double kNever = std::numeric_limits<double>::infinity();

}  // namespace

DraftCost draft_model_cost(const DraftModel& draft) {
  const CostCurve& curve = draft.costs().curve;
  return {.token_seconds = [&curve](const LayerSet& /*layers*/, int n_context,
                                    int n_requests) { return curve.pass(1, n_context, n_requests); },
          .curve = &curve};
}

class DraftModelMethod::ModelDrafter final : public ChainDrafter {
 public:
  ModelDrafter(DraftModelMethod& method, std::span<const TokenId> prompt)
      : ChainDrafter(method, method.control_), method_(method), slot_(method.slots_.acquire(prompt)) {}
  ~ModelDrafter() override {
    if (slot_ == nullptr) return;
    forget_draft();
    method_.slots_.release(*slot_);
  }

  void append(std::span<const TokenId> tokens) override {
    ChainDrafter::append(tokens);
    keep_read();
  }

  void finish() override { method_.usual_answer_ += kAnswerRate * (n_answer() - method_.usual_answer_); }

  bool has_slot() const { return slot_ != nullptr; }
  Slot& slot() { return *slot_; }
  std::vector<ChainGrower::Read>& read() { return read_; }
  std::span<const TokenId> unread() const { return request().text().subspan(slot_->text.size()); }

  // Of a draft that nothing became of.
  void forget_draft() {
    method_.draft_->executor->cells().rollback(slot_->sequence);
    read_.clear();
  }

 private:
  double n_answer() const { return static_cast<double>(request().text().size() - request().n_prompt()); }

  // An answer is thought to get as many more tokens as answers usually have, or as it has already if
  // that is more: the longer one is, the longer it is likely to go on.
  DraftSituation situation() const override {
    if (!has_slot()) return {.n_context = n_context(), .read_seconds = kNever, .n_left = 0};
    const CostCurve& curve = *method_.control_.cost->curve;
    const auto n_unread = static_cast<int>(unread().size());
    const int n_before = n_context() - n_unread / 2;  // of the unread, as many on average
    return {.n_context = n_context(),
            .read_seconds = curve.pass(n_unread, n_before) - curve.pass(1, n_before),
            .n_left = std::min<double>(request().n_left(), std::max(method_.usual_answer_, n_answer()))};
  }

  // What was read and is text now is committed, but for the last token: the next draft begins with
  // what the model says behind it. (Drafts may be pruned, and the text may take what was cut off.)
  void keep_read() {
    if (read_.empty()) return;
    const auto text = unread();
    const size_t most = std::min(read_.size(), text.size() - std::min<size_t>(1, text.size()));
    std::vector<NodeId> path;
    for (size_t i = 0; i < most && read_[i].token == text[i]; ++i) path.push_back(read_[i].cell);
    if (path.empty()) return forget_draft();
    method_.draft_->executor->cells().commit(slot_->sequence, path);
    slot_->text.insert(slot_->text.end(), text.begin(),
                       text.begin() + static_cast<ptrdiff_t>(path.size()));
    read_.clear();
  }

  DraftModelMethod& method_;
  Slot* slot_;                           // nullptr: all are taken
  std::vector<ChainGrower::Read> read_;  // by the latest draft, in scratch cells
};

DraftModelMethod::DraftModelMethod(const ChainOptions& options, std::shared_ptr<DraftModel> draft,
                                   DraftControl control)
    : options_(options),
      draft_(std::move(draft)),
      control_(std::move(control)),
      slots_(*draft_->executor, draft_->n_slots, draft_->n_context),
      grower_(options, *draft_->executor, control_),
      plan_{.layers = LayerSet::full(draft_->model->config().n_layers)} {}

DraftModelMethod::~DraftModelMethod() = default;

std::unique_ptr<Drafter> DraftModelMethod::begin(std::span<const TokenId> prompt) {
  return std::make_unique<ModelDrafter>(*this, prompt);
}

void DraftModelMethod::draft(std::span<const DraftJob> jobs) {
  for (const DraftJob& job : jobs) {
    auto& drafter = static_cast<ModelDrafter&>(*job.drafter);
    if (!drafter.has_slot()) continue;
    drafter.forget_draft();
    const auto plan = drafter.gated(plan_, job);
    if (!plan || !catch_up(drafter)) continue;
    grower_.begin({.drafter = &drafter,
                   .job = &job,
                   .plan = *plan,
                   .sequence = drafter.slot().sequence,
                   .unread = drafter.unread(),
                   .read = &drafter.read()});
  }
  grower_.run();
}

bool DraftModelMethod::catch_up(ModelDrafter& drafter) {
  Slot& slot = drafter.slot();
  const auto room = static_cast<size_t>(draft_->n_context);
  if (drafter.request().text().size() + static_cast<size_t>(options_.tokens) > room) return false;
  while (drafter.unread().size() > kMostUnread) {
    const auto unread = drafter.unread();
    const size_t n = std::min(unread.size() - 1, static_cast<size_t>(draft_->executor->max_rows()));
    if (!draft_->executor->read(slot.sequence, readable(*draft_->model, unread.first(n)))) return false;
    slot.text.insert(slot.text.end(), unread.begin(), unread.begin() + static_cast<ptrdiff_t>(n));
  }
  return true;
}

}  // namespace forerun
