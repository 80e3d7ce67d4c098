// What the logits behind a text are, computed the simplest way: the whole text in one
// pass over an empty cache of its own. Remembers what it computed.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "support/engine.h"

namespace forerun::test {

class PathOracle {
 public:
  explicit PathOracle(std::shared_ptr<const Model> model, KvType type = KvType::kF32)
      : executor_(make_executor(std::move(model), type, 256, 256)) {}

  // Behind the last token of `text`.
  const std::vector<float>& logits(const std::vector<TokenId>& text) {
    auto [found, is_new] = known_.try_emplace(text);
    if (is_new) found->second = compute(text, text.size(), std::nullopt);
    return found->second;
  }

  // The same when the tokens behind the first `n_full` are read with `layers` only.
  std::vector<float> draft_logits(const std::vector<TokenId>& text, size_t n_full,
                                  const LayerSet& layers) {
    return compute(text, n_full, layers);
  }

 private:
  std::vector<float> compute(std::span<const TokenId> text, size_t n_full,
                             const std::optional<LayerSet>& layers) {
    const SequenceId sequence = executor_->cells().create();
    std::vector<float> all;
    if (n_full > 0) all = read_and_commit(*executor_, sequence, text.first(n_full));
    if (n_full < text.size()) all = read_and_commit(*executor_, sequence, text.subspan(n_full), layers);
    executor_->cells().remove(sequence);
    const auto n_vocab = static_cast<ptrdiff_t>(executor_->model().config().n_vocab);
    return {all.end() - n_vocab, all.end()};
  }

  std::unique_ptr<Executor> executor_;
  std::map<std::vector<TokenId>, std::vector<float>> known_;
};

}  // namespace forerun::test
