#include "bench/engine/contender.h"
#include "core/check.h"

namespace forerun {
namespace {

class ForerunContender final : public Contender {
 public:
  ForerunContender(std::shared_ptr<const Model> model, const ContenderOptions& options)
      : n_vocab_(model->config().n_vocab),
        executor_(std::move(model),
                  {.kv = {.n_cells = options.n_context, .type = options.device.kv_type},
                   .max_rows = kMaxReadTokens}),
        sequence_(executor_.cells().create()) {}

  void read(int n) override {
    const int start = executor_.cells().n_committed(sequence_);
    tokens_.clear();
    for (int i = 0; i < n; ++i) tokens_.push_back(TokenId{made_up_token(start + i, n_vocab_)});
    CHECK(executor_.read(sequence_, tokens_).has_value());
  }

  void keep(int n) override { executor_.cells().truncate(sequence_, n); }

 private:
  int n_vocab_;
  Executor executor_;
  SequenceId sequence_;
  std::vector<TokenId> tokens_;
};

}  // namespace

std::unique_ptr<Contender> make_forerun_contender(std::shared_ptr<const Model> model,
                                                  const ContenderOptions& options) {
  return std::make_unique<ForerunContender>(std::move(model), options);
}

}  // namespace forerun
