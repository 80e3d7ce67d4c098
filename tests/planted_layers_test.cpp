#include <gtest/gtest.h>

#include <cstdio>
#include <map>

#include "budget/draft_value.h"
#include "core/stopwatch.h"
#include "layers/agreement.h"
#include "layers/knapsack.h"
#include "support/engine.h"
#include "support/model_files.h"
#include "support/written_text.h"
#include "text/vocabulary.h"
namespace forerun {
namespace {
using namespace test;
TEST(PlantedLayers, Experiment) {
  const auto model = load_model(model_file("smollm2-deep"), 2);
  const auto executor = make_executor(model, KvType::kF16, 4096, 512);
  const Vocabulary vocabulary = Vocabulary::load(model->file().metadata());
  auto prompt =
      vocabulary.tokenize("The history of the bicycle begins in the early nineteenth century, when");
  WrittenText text(*executor, 0.0f, 160, prompt);
  const int L = model->config().n_layers;
  const auto arr = model->file().metadata().get_int_array("forerun.planted_blocks").value();
  LayerSet planted = LayerSet::full(L);
  for (auto b : arr) planted.set(BlockId{(int)b}, false);
  AgreementProbe probe(*executor);
  const size_t end = text.text().size();
  const AgreementWindow window{.request = &text, .end = end, .n = 128};
  const auto measure = [&](const LayerSet& layers) { return probe.measure(layers, {&window, 1}); };
  printf("planted: %d blocks, agreement %.3f\n", (int)arr.size(), measure(planted).value());
  const Calibration costs{.curve = CostCurve({{1, 22e-3, 1e-6}, {8, 37e-3, 4e-6}, {32, 100e-3, 10e-6}}),
                          .blocks = {.attention = 45e-6, .mlp = 95e-6, .rest = 2.5e-3}};
  auto value = [&](const LayerSet& l, double a) {
    return best_draft(costs, a, draft_seconds(costs, l, 150), 150).tokens_per_second /
           best_draft(costs, 0, 1, 150, {.max = 0}).tokens_per_second;
  };
  printf("planted value %.3f\n", value(planted, measure(planted).value()));
  const char* env = getenv("EXP");
  int branches = atoi(env), r = atoi(getenv("R")), wm = atoi(getenv("WM"));
  Stopwatch watch;
  TextBlockStates states(*executor, text, end - 128, r);
  const double t0 = watch.seconds();
  auto choices = solve_knapsack(states, {.mlp_weight = wm, .max_branches = branches});
  printf("dp %.2f + %.2f s, %d choices\n", t0, watch.seconds() - t0, (int)choices.size());
  double best = 0;
  for (auto& c : choices) {
    int hit = 0, miss = 0;
    for (int b = 0; b < 2 * L; ++b)
      if (!c.layers.runs(BlockId{b})) {
        if (!planted.runs(BlockId{b}))
          hit++;
        else
          miss++;
      }
    bool show = c.skipped_weight % std::max(1, (int)(choices.back().skipped_weight / 40)) == 0 ||
                choices.size() < 40;
    if (!show) continue;
    const double a = measure(c.layers).value();
    best = std::max(best, value(c.layers, a));
    printf("w %d cos %.5f agree %.3f true %.3f planted %d other %d value %.3f\n", c.skipped_weight,
           c.cosine, c.agreement, a, hit, miss, value(c.layers, a));
  }
  printf("best %.3f of planted %.3f\n", best, best / value(planted, measure(planted).value()));
}
}  // namespace
}  // namespace forerun
