#include "draft/model/draft_model.h"

#include <algorithm>

#include "core/stopwatch.h"
#include "model/foreign_text.h"

namespace forerun {
namespace {

// A draft's first pass reads at most so many tokens of the text; more are read before.
constexpr size_t kMostUnread = 16;
// How fast the usual length of answers is learnt.
constexpr double kAnswerRate = 0.2;

}  // namespace

class DraftModelDrafter::OfRequest final : public RequestModelDrafter {
 public:
  OfRequest(DraftModelDrafter& drafter, const RequestView& request)
      : RequestModelDrafter(request, drafter.stopping()),
        drafter_(drafter),
        slot_(drafter.slots_.acquire(request.text())) {}
  ~OfRequest() override {
    if (slot_ == nullptr) return;
    forget_draft();
    drafter_.slots_.release(*slot_);
  }

  std::optional<DraftPlan> plan() override {
    if (slot_ == nullptr) return std::nullopt;
    return DraftPlan{.layers = LayerSet::full(drafter_.draft_->model->config().n_layers)};
  }

  double seconds_to_read() const override {
    return drafter_.costs().reading(static_cast<int>(unread().size()), n_context());
  }

  double n_expected() const override { return request().n_expected(drafter_.usual_answer_); }

  // Reads what cannot be a draft's first rows.
  std::optional<ChainStart> start() override {
    forget_draft();
    const DraftModel& draft = *drafter_.draft_;
    const auto n_wanted = request().text().size() + static_cast<size_t>(drafter_.options_.tokens);
    if (n_wanted > static_cast<size_t>(draft.n_context)) return std::nullopt;
    const size_t n_unread = unread().size();
    const Stopwatch watch;
    while (unread().size() > kMostUnread) {
      const auto text = unread();
      const size_t n = std::min(text.size() - 1, static_cast<size_t>(executor().max_rows()));
      if (!executor().read(slot_->sequence, known_tokens(*draft.model, text.first(n))))
        return std::nullopt;
      slot_->text.insert(slot_->text.end(), text.begin(), text.begin() + static_cast<ptrdiff_t>(n));
    }
    if (n_unread > kMostUnread)
      draft.costs->observe_reading(static_cast<int>(n_unread), n_context(), watch.seconds());
    return ChainStart{.sequence = slot_->sequence, .unread = unread(), .read = &read_};
  }

  // What was read and is text now is committed, but for the last token: the next draft begins with
  // what the model says behind it. (Drafts may be pruned, and the text may take what was cut off.)
  void append(std::span<const TokenId> tokens) override {
    RequestModelDrafter::append(tokens);
    if (read_.empty()) return;
    const auto text = unread();
    const size_t most = std::min(read_.size(), text.size() - std::min<size_t>(1, text.size()));
    std::vector<NodeId> path;
    for (size_t i = 0; i < most && read_[i].token == text[i]; ++i) path.push_back(read_[i].cell);
    if (path.empty()) return forget_draft();
    executor().cells().commit(slot_->sequence, path);
    slot_->text.insert(slot_->text.end(), text.begin(),
                       text.begin() + static_cast<ptrdiff_t>(path.size()));
    read_.clear();
  }

  void finish() override {
    drafter_.usual_answer_ += kAnswerRate * (request().n_answer() - drafter_.usual_answer_);
  }

 private:
  std::span<const TokenId> unread() const { return request().text().subspan(slot_->text.size()); }
  Executor& executor() { return *drafter_.draft_->executor; }

  // Of a draft that nothing became of.
  void forget_draft() {
    executor().cells().rollback(slot_->sequence);
    read_.clear();
  }

  DraftModelDrafter& drafter_;
  Slot* slot_;                   // nullptr: all are taken
  std::vector<ReadToken> read_;  // by the latest draft, in scratch cells
};

std::unique_ptr<RequestModelDrafter> DraftModelDrafter::begin(const RequestView& request) {
  return std::make_unique<OfRequest>(*this, request);
}

}  // namespace forerun
