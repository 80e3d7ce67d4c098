// Rules that compare distributions, with a planner that has several drafters to choose from: the text
// has the distribution of plain decoding, whichever of them draws, and however far.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <vector>

#include "cost/guessed_costs.h"
#include "draft/model/layer_skipping.h"
#include "engine/byte_model.h"
#include "engine/loaded_model.h"
#include "engine/stepper.h"
#include "plan/cost_planner.h"
#include "support/temp_dir.h"
#include "support/thorough.h"

namespace forerun {
namespace {

constexpr int kSlots = 16;
constexpr int kContext = 32;
constexpr int kDraws = test::thorough(6000, 320);

// Some blocks of the model, offered in some of the steps only, so that drafters take turns.
class NowAndThen final : public LayerSelector {
 public:
  NowAndThen(LayerSet layers, int offset, int64_t& n_drafted)
      : layers_(std::move(layers)), offset_(offset), n_drafted_(n_drafted) {}

  NextPlan begin(const RequestView& request) override {
    return [this, &request]() -> std::optional<DraftPlan> {
      const size_t step = request.text().size() + static_cast<size_t>(offset_);
      if (step % 3 == 0) return std::nullopt;
      return DraftPlan{.layers = layers_};
    };
  }
  void observe(const ChainOutcome& outcome) override { n_drafted_ += outcome.n_drafted; }

 private:
  LayerSet layers_;
  int offset_;
  int64_t& n_drafted_;
};

// Proposes the same few tokens always.
class StubbornDrafter final : public Drafter {
 public:
  std::unique_ptr<RequestDrafter> begin(std::span<const TokenId> /*prompt*/) override {
    class OfRequest final : public RequestDrafter {
     public:
      void draft(const DraftLimits& limits, DraftTree& tree) override {
        for (int32_t i = 0; i < 8 && tree.size() < limits.max_nodes; ++i) {
          tree.add({.token = TokenId{i * 31}, .score = 0.3f});
        }
      }
      void append(std::span<const TokenId> /*tokens*/) override {}
    };
    return std::make_unique<OfRequest>();
  }
};

class DrawnDrafts : public ::testing::Test {
 protected:
  DrawnDrafts() {
    const test::TempDir folder;
    byte_model(3).write(folder.file("model.gguf"));  // of which both drafters draft often enough
    loaded_.emplace(
        load_model(folder.file("model.gguf"), {.name = "cpu", .n_threads = 1, .pin_threads = false}));
    executor_.emplace(loaded_->model, ExecutorOptions{.kv = {.n_cells = 2 * kSlots * kContext}});
    // Drafts are cheap, and so is verifying them.
    costs_.emplace(
        Calibration{.curve = CostCurve({{.n_rows = 1, .seconds = 1, .seconds_per_token = 0},
                                        {.n_rows = 64, .seconds = 3, .seconds_per_token = 0}}),
                    .blocks = {.attention = 0.001, .mlp = 0.001, .rest = 0.01}},
        PassCosts::Known::kGiven);
    stepper_.emplace(*executor_, loaded_->vocabulary,
                     StepperOptions{.n_slots = kSlots, .n_context = kContext});
  }

  std::unique_ptr<Planner> planner(std::vector<int64_t>& n_drafted) {
    const int n_layers = loaded_->model->config().n_layers;
    DrafterSet drafters;
    drafters.texts.push_back(std::make_unique<StubbornDrafter>());
    for (int i = 0; i < 2; ++i) {
      LayerSet layers = LayerSet::full(n_layers);
      layers.set(i == 0 ? mlp_block(0) : attention_block(n_layers - 1), false);
      drafters.models.push_back(std::make_unique<LayerSkippingDrafter>(
          ChainOptions{}, *executor_, *costs_,
          std::make_unique<NowAndThen>(layers, i, n_drafted[static_cast<size_t>(i)])));
    }
    return std::make_unique<CostPlanner>(std::move(drafters), *costs_);
  }

  // How often each pair of tokens follows the first one.
  std::map<std::vector<TokenId>, int> pairs(const Speculation& speculation, uint64_t first_seed) {
    std::map<std::vector<TokenId>, int> counts;
    for (int i = 0; i < kDraws; i += kSlots) {
      std::vector<RequestId> ids;
      for (int j = 0; j < kSlots; ++j) {
        Request request{.prompt = loaded_->vocabulary.tokenize("the sea")};
        request.options.max_tokens = 4;
        request.options.ignore_eos = true;
        request.options.sampling.temperature = 1.0f;
        request.options.sampling.top_k = 4;
        request.options.sampling.seed = first_seed + static_cast<uint64_t>(i + j);
        ids.push_back(stepper_->submit(std::move(request), speculation));
      }
      while (stepper_->step()) {
      }
      for (const RequestId id : ids) {
        const auto generation = std::get<Generation>(stepper_->take(id).value());
        ++counts[{generation.tokens[1], generation.tokens[2]}];
      }
    }
    return counts;
  }

  std::optional<LoadedModel> loaded_;
  std::optional<Executor> executor_;
  std::optional<PassCosts> costs_;
  std::optional<Stepper> stepper_;
};

// The chi-squared statistic of two samples of one size is about its degrees of freedom d, with a
// deviation of sqrt(2 d). (Seeds are given: this cannot fail by chance.)
TEST_F(DrawnDrafts, KeepTheDistribution) {
  const auto plain = pairs({}, 1);
  for (const AcceptRule accept : {AcceptRule::kLeviathan, AcceptRule::kRejection}) {
    std::vector<int64_t> n_drafted(2);
    const auto planning = planner(n_drafted);
    auto found = pairs({.planner = planning.get(), .accept = accept}, 1'000'000);
    auto all = plain;
    for (const auto& [tokens, n] : found) all[tokens] += n;
    double statistic = 0;
    int n_cells = 0;
    for (const auto& [tokens, n] : all) {
      if (n < 20) continue;
      const auto before = plain.find(tokens);
      const double difference = found[tokens] - (before != plain.end() ? before->second : 0);
      statistic += difference * difference / n;
      ++n_cells;
    }
    EXPECT_GE(n_cells, test::thorough(20, 3)) << "or nothing is tested";
    EXPECT_LT(statistic, n_cells + 4 * std::sqrt(2.0 * n_cells)) << to_string(accept);
    EXPECT_GT(n_drafted[0], kDraws / 12) << "both draw";
    EXPECT_GT(n_drafted[1], kDraws / 12);
  }
}

}  // namespace
}  // namespace forerun
