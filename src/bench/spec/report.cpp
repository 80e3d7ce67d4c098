#include "bench/spec/report.h"

#include <fmt/format.h>

#include <cmath>
#include <thread>

#include "api/statistics_json.h"
#include "bench/llama/method.h"
#include "core/version.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

// llama-server says less about its drafts than our methods: what it does not say is absent.
Json summary_json(const SpecSummary& summary, bool is_peer) {
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
              {"drafted", summary.drafts.n_drafted},
              {"accepted", summary.drafts.n_accepted}};
  if (is_peer) return object;
  object["accept_rate"] = speculation.accept_rate();
  object["draft_share"] = summary.draft_share;
  object["pass_share"] = summary.pass_share;
  object["sample_share"] = summary.sample_share;
  object["by_depth"] = by_depth_json(speculation);
  object["by_source"] = by_source_json(speculation);
  return object;
}

// What each prompt took, for statistics of one's own.
Json runs_json(const SpecBenchResult& result, size_t method, bool with_steps) {
  Json list = Json::array();
  for (size_t i = 0; i < result.prompts.size(); ++i) {
    const SpecRun& run = result.runs[method][i];
    list.push_back({{"id", result.prompts[i].id},
                    {"category", result.prompts[i].category},
                    {"tokens", run.tokens.size()},
                    {"identical", result.is_identical(method, i)},
                    {"prompt_ms", run.prompt_ms},
                    {"decode_ms", run.decode_ms},
                    {"steps", run.speculation.n_steps},
                    {"drafted", run.drafts.n_drafted},
                    {"accepted", run.drafts.n_accepted}});
    if (!with_steps) continue;
    Json& drafted = list.back()["drafted_by_step"] = Json::array();
    Json& accepted = list.back()["accepted_by_step"] = Json::array();
    for (const DraftCounts& step : run.steps) {
      drafted.push_back(step.n_drafted);
      accepted.push_back(step.n_accepted);
    }
  }
  return list;
}

// Where texts part from plain decoding's.
Json differences_json(const SpecBenchResult& result, size_t method) {
  Json list = Json::array();
  for (const TextDifference& difference : result.differences) {
    if (difference.method != method) continue;
    list.push_back({{"id", result.prompts[difference.prompt].id},
                    {"token", difference.token},
                    {"margin", difference.margin ? Json(*difference.margin) : Json()}});
  }
  return list;
}

Json method_json(const SpecBenchResult& result, size_t method, bool with_steps) {
  const bool is_peer = result.is_peer(method);
  Json object = summary_json(result.summary(method), is_peer);
  object["speed_reference"] = result.methods[0];
  object["text_reference"] = result.methods[result.text_reference(method)];
  Json& categories = object["categories"] = Json::object();
  for (const std::string& category : result.categories()) {
    categories[category] = summary_json(result.summary(method, category), is_peer);
  }
  if (!is_peer) object["differences"] = differences_json(result, method);
  object["runs"] = runs_json(result, method, with_steps && !is_peer);
  return object;
}

// ---- The setting ----

Json placement_json(const PlacementOptions& options, const std::string& where) {
  return {{"gpu_layers", options.n_gpu_layers ? Json(*options.n_gpu_layers) : Json("auto")},
          {"split", options.split},
          {"cpu_experts", options.cpu_experts},
          {"rpc", options.rpc},
          {"where", where}};
}

Json setting_json(const SpecBenchOptions& options, const SpecBenchResult& result) {
  const SamplingOptions& sampling = options.generation.sampling;
  const SpeculationOptions& speculation = options.engine.speculation;
  Json methods = Json::object();
  for (const auto& [name, value] : speculation.options) methods[name] = value;
  Json datastores = Json::array();
  for (const auto& folder : speculation.datastores) datastores.push_back(folder.string());
  Json stop_tokens = Json::array();
  for (const TokenId token : options.generation.stop_tokens) stop_tokens.push_back(to_int(token));
  Json json{{"forerun", kVersionText},
            {"model", options.engine.model},
            {"prompts_file", options.prompt_origin.path},
            {"prompts_hash", fmt::format("{:016x}", options.prompt_origin.hash)},
            {"limit", options.prompt_origin.limit},
            {"device", result.device},
            {"device_description", result.device_description},
            {"kernels", result.kernels},
            {"threads", result.n_threads},
            {"pinned", options.engine.pin_threads},
            {"cpus", std::thread::hardware_concurrency()},
            {"context", result.n_context},
            {"kv_type", options.engine.kv_type},
            {"exact", options.engine.exact ? Json(*options.engine.exact) : Json()},
            {"batch", options.batch},
            {"max_tokens", options.generation.max_tokens},
            {"stop", options.generation.stop},
            {"stop_tokens", stop_tokens},
            {"ignore_eos", options.generation.ignore_eos},
            {"temperature", sampling.temperature},
            {"sampling", sampling_json(sampling)},
            {"seed", sampling.seed.value_or(0)},
            {"accept", speculation.accept},
            {"tree", speculation.tree},
            {"datastores", datastores},
            {"live", !options.live_folder.empty()},
            {"live_folder", options.live_folder.string()},
            {"method_options", methods}};
  if (options.prompt_origin.mix) json["mix"] = *options.prompt_origin.mix;
  if (!result.placement.empty()) {
    json["placement"] = placement_json(options.engine.placement, result.placement);
  }
  return json;
}

// The server that was compared with, and how its modes were started.
Json llama_server_json(const SpecBenchOptions& options, const SpecBenchResult& result) {
  Json modes = Json::object();
  for (size_t m = result.n_own(); m < result.methods.size(); ++m) {
    const std::string mode = result.methods[m].substr(kLlamaPrefix.size());
    modes[mode] = mode_arguments(mode);
  }
  return {
      {"program", options.llama_server.program}, {"version", result.llama_version}, {"modes", modes}};
}

Json comparison_json(const SpecBenchResult& result, const PeerComparison& comparison) {
  return {{"method", result.methods[comparison.own]},
          {"mode", result.methods[comparison.peer]},
          {"ratio", comparison.speed.value},
          {"ratio_low", comparison.speed.interval.low},
          {"ratio_high", comparison.speed.interval.high}};
}

}  // namespace

Json sampling_json(const SamplingOptions& sampling) {
  Json biases = Json::array();
  for (const auto& [token, bias] : sampling.logit_bias) {
    biases.push_back(fmt::format("{}={}", to_int(token), bias));
  }
  return {{"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"min_p", sampling.min_p},
          {"repeat_penalty", sampling.repeat_penalty},
          {"repeat_last_n", sampling.repeat_last_n},
          {"presence_penalty", sampling.presence_penalty},
          {"frequency_penalty", sampling.frequency_penalty},
          {"logit_bias", biases}};
}

Json spec_bench_json(const SpecBenchOptions& options, const SpecBenchResult& result) {
  Json object = setting_json(options, result);
  if (result.n_peers > 0) object["llama_server"] = llama_server_json(options, result);
  if (const auto comparison = result.against_peers()) {
    object["against_llama_server"] = comparison_json(result, *comparison);
  }
  Json& methods = object["methods"] = Json::object();
  for (size_t m = 0; m < result.methods.size(); ++m) {
    methods[result.methods[m]] = method_json(result, m, options.reports_steps);
  }
  return object;
}

std::string peer_words(const SpecBenchResult& result) {
  const auto comparison = result.against_peers();
  if (!comparison || !std::isfinite(comparison->speed.value)) return "";
  const SpeedRatio& speed = comparison->speed;
  return fmt::format(
      "{} is {:.2f} times as fast as llama.cpp's best mode ({}; 95 % interval {:.2f} to {:.2f})",
      result.methods[comparison->own], speed.value, result.methods[comparison->peer], speed.interval.low,
      speed.interval.high);
}

}  // namespace forerun
