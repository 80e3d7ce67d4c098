// Passes as graphs of our own, in one stage for each run of blocks that one part of the model has: a
// single one where a device has them all.
#pragma once

#include <memory>
#include <vector>

#include "model/executor_options.h"
#include "model/kv_cache.h"
#include "model/model.h"
#include "model/part_passes.h"
#include "model/pass_runner.h"
#include "model/pass_stages.h"

namespace forerun {

class OwnPasses final : public PassRunner {
 public:
  // Throws Error{kOutOfMemory}.
  OwnPasses(std::shared_ptr<const Model> model, const ExecutorOptions& options);

  KvCells& cells() override { return cells_; }
  void run(const Pass& pass, PassResult& result) override;
  int n_computed(int n_rows) const override;
  int n_until_next_span(int position) const override;
  int n_graphs_built() const override;
  bool was_usual() const override { return was_usual_; }
  void save(SequenceId sequence, std::span<const TokenId> tokens,
            const std::filesystem::path& path) const override;
  std::optional<RestoredText> restore(const std::filesystem::path& path) override;

 private:
  StagePlan plan() const {
    return {.part_of_block = model_->part_of_block(),
            .head_part = model_->head_part(),
            .config = &model_->config()};
  }
  KvContents contents() const;
  void reserve();
  void plan_stages_of(const Pass& pass);
  void enter(const Pass& pass, std::span<float> states) const;
  // Rows of the stage, with `logits` where they go on to the next.
  std::span<const Row> rows_for(const Pass& pass, size_t stage);
  void keep_rows_that_came_out(const PartPasses& part);
  void collect_hidden(PartPasses& part, size_t first, size_t n, bool is_last, PassResult& result);
  void collect_logits(PartPasses& part, PassResult& result);

  std::shared_ptr<const Model> model_;
  std::vector<KvCache> caches_;  // by part
  KvCells cells_;                // after the memory: a size beyond it is found out there
  std::vector<std::unique_ptr<PartPasses>> parts_;
  std::vector<PassStage> stages_;  // of the last pass
  int last_writing_stage_ = -1;
  int64_t n_passes_ = 0;
  bool was_usual_ = true;
  std::vector<Row> rows_;             // that are left in a stage
  std::vector<float> between_;        // their states, between stages of one part
  std::vector<int32_t> row_of_pass_;  // of each of them
  std::vector<Row> stage_rows_;
  std::vector<std::vector<float>> hidden_;  // of stages before the last, by boundary
};

}  // namespace forerun
