#include "bench/spec_report.h"

#include <thread>

#include "api/statistics_json.h"
#include "core/version.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

Json summary_json(const SpecSummary& summary) {
  const SpeculationStatistics& speculation = summary.speculation;
  Json object{{"prompts", summary.n_prompts},
              {"identical", summary.n_identical},
              {"tokens", summary.n_tokens},
              {"speedup", summary.speedup},
              {"speedup_low", summary.speedup_interval.low},
              {"speedup_high", summary.speedup_interval.high},
              {"speedup_total", summary.speedup_total},
              {"tokens_per_second", summary.tokens_per_second},
              {"tokens_per_step", speculation.tokens_per_step()},
              {"accept_rate", speculation.accept_rate()},
              {"draft_share", summary.draft_share},
              {"pass_share", summary.pass_share},
              {"sample_share", summary.sample_share}};
  object["by_depth"] = by_depth_json(speculation);
  object["by_source"] = by_source_json(speculation);
  return object;
}

// What each prompt took, for statistics of one's own.
Json runs_json(const SpecBenchResult& result, size_t method) {
  Json list = Json::array();
  for (size_t i = 0; i < result.prompts.size(); ++i) {
    const SpecRun& run = result.runs[method][i];
    list.push_back({{"id", result.prompts[i].id},
                    {"category", result.prompts[i].category},
                    {"tokens", run.tokens.size()},
                    {"identical", run.tokens == result.runs[0][i].tokens},
                    {"prompt_ms", run.prompt_ms},
                    {"decode_ms", run.decode_ms},
                    {"steps", run.speculation.n_steps},
                    {"drafted", run.speculation.total().n_drafted},
                    {"accepted", run.speculation.total().n_accepted}});
  }
  return list;
}

Json setting_json(const SpecBenchOptions& options, const SpecBenchResult& result) {
  const SamplingOptions& sampling = options.generation.sampling;
  Json methods = Json::object();
  for (const auto& [name, value] : options.engine.speculation.options) methods[name] = value;
  return {{"forerun", kVersionText},
          {"model", options.engine.model},
          {"device", result.device},
          {"device_description", result.device_description},
          {"kernels", result.kernels},
          {"threads", result.n_threads},
          {"cpus", std::thread::hardware_concurrency()},
          {"batch", options.batch},
          {"max_tokens", options.generation.max_tokens},
          {"temperature", sampling.temperature},
          {"seed", sampling.seed.value_or(0)},
          {"accept", options.engine.speculation.accept},
          {"tree", options.engine.speculation.tree},
          {"live", !options.live_folder.empty()},
          {"method_options", methods}};
}

}  // namespace

Json spec_bench_json(const SpecBenchOptions& options, const SpecBenchResult& result) {
  Json object = setting_json(options, result);
  Json& methods = object["methods"] = Json::object();
  for (size_t m = 0; m < result.methods.size(); ++m) {
    Json& method = methods[result.methods[m]] = summary_json(result.summary(m));
    Json& categories = method["categories"] = Json::object();
    for (const std::string& category : result.categories()) {
      categories[category] = summary_json(result.summary(m, category));
    }
    method["runs"] = runs_json(result, m);
  }
  return object;
}

}  // namespace forerun
