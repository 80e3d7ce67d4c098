// The part of the page that says how it was measured, and how to do it again.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

#include "bench/page/parts.h"
#include "bench/spec/report.h"
#include "pictures/svg_plot.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

// Quoted if a shell would change it.
std::string shell_word(const std::string& word) {
  constexpr std::string_view kSafe =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_./:,=+@%";
  if (!word.empty() && word.find_first_not_of(kSafe) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string words_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return fmt::format("{:.6g}", value.get<double>());
  return value.dump();
}

// A command of many flags, one per line.
class Command {
 public:
  explicit Command(std::string start) : text_(std::move(start)) {}

  void flag(std::string_view name) { text_ += fmt::format(" \\\n  {}", name); }
  // Nothing if the value is empty.
  void add(std::string_view name, const std::string& value) {
    if (!value.empty()) text_ += fmt::format(" \\\n  {} {}", name, shell_word(value));
  }
  // Once for each value.
  void add_all(std::string_view name, const Json& values) {
    for (const Json& value : values) add(name, words_of(value));
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

void add_sampling(Command& command, const Json& sampling) {
  constexpr std::array<std::pair<std::string_view, const char*>, 7> kFlags{
      {{"--top-k", "top_k"},
       {"--top-p", "top_p"},
       {"--min-p", "min_p"},
       {"--repeat-penalty", "repeat_penalty"},
       {"--repeat-last-n", "repeat_last_n"},
       {"--presence-penalty", "presence_penalty"},
       {"--frequency-penalty", "frequency_penalty"}}};
  const Json defaults = sampling_json({});
  for (const auto& [flag, name] : kFlags) {
    if (sampling.contains(name) && sampling[name] != defaults[name]) {
      command.add(flag, setting(sampling, name));
    }
  }
  command.add_all("--logit-bias", sampling.value("logit_bias", Json::array()));
}

void add_placement(Command& command, const Json& placement) {
  command.add("--gpu-layers", setting(placement, "gpu_layers"));
  command.add_all("--split", placement.value("split", Json::array()));
  if (placement.value("cpu_experts", false)) command.flag("--cpu-experts");
  command.add_all("--rpc", placement.value("rpc", Json::array()));
}

std::string repeat_command(const Json& json, const SpecBenchResult& result) {
  Command command("forerun bench spec");
  const std::vector<std::string> own(
      result.methods.begin(), result.methods.begin() + static_cast<std::ptrdiff_t>(result.n_own()));
  command.add("--model", setting(json, "model"));
  command.add("--prompts", setting(json, "prompts_file"));
  if (json.value("limit", 0) > 0) command.add("--limit", setting(json, "limit"));
  command.add("--mix", setting(json, "mix"));
  command.add("--methods", fmt::format("{}", fmt::join(own, ",")));
  if (const auto server = json.find("llama_server"); server != json.end()) {
    std::vector<std::string> modes;
    for (const auto& [mode, arguments] : server->at("modes").items()) modes.push_back(mode);
    command.add("--llama-server", setting(*server, "program"));
    command.add("--llama-modes", fmt::format("{}", fmt::join(modes, ",")));
  }
  command.add("--batch", setting(json, "batch"));
  command.add("--predict", setting(json, "max_tokens"));
  command.add_all("--stop", json.value("stop", Json::array()));
  command.add_all("--stop-token", json.value("stop_tokens", Json::array()));
  if (json.value("ignore_eos", false)) command.flag("--ignore-eos");
  command.add("--temp", setting(json, "temperature"));
  add_sampling(command, json.value("sampling", Json::object()));
  command.add("--seed", setting(json, "seed"));
  command.add("--device", setting(json, "device"));
  add_placement(command, json.value("placement", Json::object()));
  command.add("--threads", setting(json, "threads"));
  if (!json.value("pinned", true)) command.flag("--no-pin");
  command.add("--ctx-size", setting(json, "context"));
  command.add("--kv-type", setting(json, "kv_type"));
  if (const Json exact = json.value("exact", Json()); exact.is_boolean())
    command.flag(exact.get<bool>() ? "--exact" : "--no-exact");
  command.add("--accept", setting(json, "accept"));
  command.add("--tree", setting(json, "tree"));
  command.add_all("--datastore", json.value("datastores", Json::array()));
  command.add("--live", setting(json, "live_folder"));
  const Json options = json.value("method_options", Json::object());
  for (const auto& [name, value] : options.items()) command.add("--" + name, words_of(value));
  return command.text();
}

}  // namespace

std::string setting(const Json& json, const char* name) {
  const auto found = json.find(name);
  return found == json.end() ? "" : words_of(*found);
}

std::string measured_section(const SpecPageData& data, const Json& json) {
  const std::string device =
      setting(json, "device_description").empty()
          ? setting(json, "device")
          : fmt::format("{} ({})", setting(json, "device_description"), setting(json, "device"));
  const std::string file = setting(json, "prompts_file");
  const std::vector<std::pair<std::string_view, std::string>> rows{
      {"model", setting(json, "model")},
      {"device", device},
      {"placement", setting(json.value("placement", Json::object()), "where")},
      {"kernels", setting(json, "kernels")},
      {"threads", fmt::format("{} on {} CPUs", setting(json, "threads"), setting(json, "cpus"))},
      {"prompts", grouped(static_cast<int64_t>(data.result.prompts.size()))},
      {"file of prompts",
       file.empty() ? "" : fmt::format("{} (hash {})", file, setting(json, "prompts_hash"))},
      {"order of prompts",
       setting(json, "mix").empty()
           ? ""
           : fmt::format("a stream that leaves its category with chance {}", setting(json, "mix"))},
      {"tokens in all", data.summaries.empty() ? "" : grouped(data.summaries[kPlainMethod].n_tokens)},
      {"batch", setting(json, "batch")},
      {"tokens per answer",
       json.value("max_tokens", -1) < 0 ? "no limit" : "at most " + setting(json, "max_tokens")},
      {"temperature", setting(json, "temperature")},
      {"seed", setting(json, "seed")},
      {"acceptance rule", setting(json, "accept")},
      {"tree", setting(json, "tree")},
      {"live datastore", json.value("live", false) ? "one for each method" : "none"},
      {"forerun", setting(json, "forerun")},
      {"llama-server", setting(json.value("llama_server", Json::object()), "version")}};
  std::string html = "<h2>How it was measured</h2>\n<table class=\"setting\"><tbody>\n";
  for (const auto& [name, value] : rows) {
    if (value.empty()) continue;
    html += fmt::format("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", name, markup_text(value));
  }
  html += R"(</tbody></table>
<p>All methods share one model and one cache and take turns prompt by prompt; each time another one
begins. Speedups are ratios of summed times. Intervals are bootstrapped over prompts.</p>
)";
  if (data.result.n_peers > 0) {
    html += R"(<p>Each mode of llama-server has a process of its own and takes its turns with the others:
the same file, tokens of the prompts, threads and size of the context. Its times are those that it
measures itself, without the way to it and back; where several prompts are answered at once, the time
from when each has its first token to the last answer. Where texts differ in length, times are
compared per token.</p>
)";
  }
  return html + fmt::format("<p>To repeat it:</p>\n<pre>{}</pre>\n",
                            markup_text(repeat_command(json, data.result)));
}

}  // namespace forerun
