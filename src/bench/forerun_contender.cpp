#include "bench/contender.h"
#include "core/check.h"

namespace forerun {
namespace {

class ForerunContender final : public Contender {
 public:
  ForerunContender(std::shared_ptr<const Model> model, int n_context)
      : n_vocab_(model->config().n_vocab),
        executor_(std::move(model), {.kv = {.n_cells = n_context}, .max_rows = kMaxReadTokens}),
        sequence_(executor_.cells().create()) {}

  void read(int n) override {
    KvCells& cells = executor_.cells();
    const int start = cells.n_committed(sequence_);
    pass_.rows.clear();
    path_.clear();
    std::optional<NodeId> parent;
    for (int i = 0; i < n; ++i) {
      parent = cells.extend(sequence_, parent);
      CHECK(parent.has_value());
      pass_.rows.push_back({.sequence = sequence_,
                            .node = *parent,
                            .token = TokenId{made_up_token(start + i, n_vocab_)},
                            .logits = i == n - 1});
      path_.push_back(*parent);
    }
    executor_.forward(pass_);
    cells.commit(sequence_, path_);
  }

  void keep(int n) override {
    const SequenceId kept = executor_.cells().fork(sequence_, n);
    executor_.cells().remove(sequence_);
    sequence_ = kept;
  }

 private:
  int n_vocab_;
  Executor executor_;
  SequenceId sequence_;
  Pass pass_;
  std::vector<NodeId> path_;
};

}  // namespace

std::unique_ptr<Contender> make_forerun_contender(std::shared_ptr<const Model> model, int n_context) {
  return std::make_unique<ForerunContender>(std::move(model), n_context);
}

}  // namespace forerun
