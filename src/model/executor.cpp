#include "model/executor.h"

#include "core/check.h"
#include "model/llama/llama_passes.h"
#include "model/own_passes.h"

namespace forerun {
namespace {

std::unique_ptr<PassRunner> make_runner(const std::shared_ptr<const Model>& model,
                                        const ExecutorOptions& options) {
  if (model->llama() != nullptr) return std::make_unique<LlamaPasses>(model, options);
  return std::make_unique<OwnPasses>(model, options);
}

}  // namespace

LogitsView PassResult::view(size_t row) const {
  CHECK(row < logit_index_.size() && logit_index_[row] >= 0);
  const auto place = static_cast<size_t>(logit_index_[row]);
  if (whole_ == nullptr) return logits_.subspan(place * n_vocab_, n_vocab_);
  const BestOfRow& best = best_[place];
  const BestLogits known{.tokens = std::span(best.tokens).first(static_cast<size_t>(best.n)),
                         .sums = best.sums};
  return {known, n_vocab_, *whole_, place};
}

std::span<const float> PassResult::hidden(size_t at, size_t row) const {
  CHECK(at < hidden_.size() && row < hidden_index_.size() && hidden_index_[row] >= 0);
  return hidden_[at].subspan(static_cast<size_t>(hidden_index_[row]) * n_embd_, n_embd_);
}

Executor::Executor(std::shared_ptr<const Model> model, const ExecutorOptions& options)
    : model_(std::move(model)),
      options_(options),
      runner_(make_runner(model_, options)),
      cells_(&runner_->cells()) {
  result_.n_vocab_ = static_cast<size_t>(model_->config().n_vocab);
  result_.n_embd_ = static_cast<size_t>(model_->config().n_embd);
}

Executor::~Executor() = default;

const PassResult& Executor::forward(const Pass& pass) {
  ++n_passes_;
  runner_->run(pass, result_);
  return result_;
}

std::optional<LogitsView> Executor::read(SequenceId sequence, std::span<const TokenId> tokens) {
  if (static_cast<int64_t>(tokens.size()) > cells().n_free()) return std::nullopt;
  read_pass_.rows.clear();
  read_path_.clear();
  std::optional<NodeId> parent;
  for (const TokenId token : tokens) {
    parent = cells().extend(sequence, parent);
    read_pass_.rows.push_back({.sequence = sequence, .node = parent.value(), .token = token});
    read_path_.push_back(*parent);
  }
  read_pass_.rows.back().logits = true;
  read_pass_.rows.back().best_do = true;
  try {
    forward(read_pass_);
  } catch (...) {
    cells().rollback(sequence);
    throw;
  }
  cells().commit(sequence, read_path_);
  return result_.view(tokens.size() - 1);
}

}  // namespace forerun
