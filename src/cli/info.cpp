// forerun info: what a model file holds.
#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "api/checked_options.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "gguf/gguf_file.h"
#include "model/model.h"
#include "model/placement.h"
#include "text/chat_template.h"
#include "text/printable.h"
#include "text/vocabulary.h"

namespace forerun {
namespace {

struct InfoOptions {
  std::string model{kDefaultModel};
  HubChoice hub;
  std::string device = "auto";
  int n_context = 0;
  PlacementOptions placement;
  bool metadata = false;
  bool json = false;
};

// What works, by what computes the model.
constexpr const char* kByForerun =
    "forerun: drafts from texts, draft models and layers; the same text with and without";
constexpr const char* kByLibllama =
    "libllama: drafts from texts and draft models, no layers, no embeddings; --exact: no drafts";

void print_row(const char* name, const std::string& value) {
  std::printf("%-14s %s\n", name, printable(value).c_str());
}

struct Summary {
  int64_t n_parameters = 0;
  std::map<std::string, size_t> bytes_by_type;
};

Summary summarise(const GgufFile& file) {
  Summary summary;
  for (const GgufTensor& tensor : file.tensors()) {
    summary.n_parameters += tensor.n_elements();
    summary.bytes_by_type[ggml_type_name(tensor.type)] += tensor.n_bytes;
  }
  return summary;
}

std::string weights_line(const Summary& summary) {
  std::string line;
  for (const auto& [type, n_bytes] : summary.bytes_by_type) {
    line += fmt::format("{}{} {:.1f} MB", line.empty() ? "" : ", ", type,
                        static_cast<double>(n_bytes) / 1e6);
  }
  return line;
}

void print_text(const GgufFile& file, const ModelConfig& config, const Vocabulary& vocabulary,
                bool has_template) {
  const Summary summary = summarise(file);
  const auto row = print_row;
  row("file",
      fmt::format("{} ({:.1f} MB{})", file.path().string(), static_cast<double>(file.n_bytes()) / 1e6,
                  file.parts().size() > 1 ? fmt::format(" in {} parts", file.parts().size()) : ""));
  if (!config.name.empty()) row("name", config.name);
  row("architecture", config.architecture);
  row("parameters", fmt::format("{:.1f} million", static_cast<double>(summary.n_parameters) / 1e6));
  row("layers", fmt::format("{} ({} blocks)", config.n_layers, 2 * config.n_layers));
  row("width", fmt::format("{}, MLP {}", config.n_embd, config.n_ff));
  row("heads", fmt::format("{} of size {}, {} for keys and values", config.heads.n, config.heads.dim,
                           config.heads.n_kv));
  if (config.window > 0) row("window", fmt::format("{} tokens", config.window));
  if (const auto& heads = config.window_heads) {
    row("heads in it",
        fmt::format("{} of size {}, {} for keys and values", heads->n, heads->dim, heads->n_kv));
  }
  row("context", fmt::format("{} tokens", config.n_ctx_train));
  row("vocabulary", fmt::format("{} tokens, {}", vocabulary.n_tokens(), vocabulary.kind_name()));
  row("chat template", has_template ? "yes" : "no");
  row("weights", weights_line(summary));
}

nlohmann::ordered_json to_json(const GgufFile& file, const ModelConfig& config,
                               const Vocabulary& vocabulary, bool has_template) {
  const Summary summary = summarise(file);
  return {{"path", file.path().string()},
          {"size_bytes", file.n_bytes()},
          {"name", config.name},
          {"architecture", config.architecture},
          {"n_parameters", summary.n_parameters},
          {"n_layers", config.n_layers},
          {"n_embd", config.n_embd},
          {"n_ff", config.n_ff},
          {"n_heads", config.heads.n},
          {"n_kv_heads", config.heads.n_kv},
          {"head_dim", config.heads.dim},
          {"window", config.window},
          {"n_ctx_train", config.n_ctx_train},
          {"n_vocab", vocabulary.n_tokens()},
          {"tokenizer", vocabulary.kind_name()},
          {"chat_template", has_template},
          {"weight_bytes", summary.bytes_by_type}};
}

// Which layers would be where, as things are now, and what would compute them.
struct Where {
  std::string text;
  bool by_libllama;
};

Where placed(const GgufFile& file, const InfoOptions& options) {
  const auto device = Device::open({.name = options.device, .n_threads = 1, .pin_threads = false});
  const Placement placement =
      place_model(file, *device, options.placement, {.n_context = options.n_context});
  std::string text = placement.where();
  if (text.empty()) text = "all layers on " + (placement.leaves_device ? "cpu" : device->info().name);
  if (placement.from_file) text += ", read from the file again and again: memory does not hold them";
  return {.text = std::move(text), .by_libllama = placement.needs_libllama()};
}

void info(const InfoOptions& options) {
  check_placement(options.placement);
  const GgufFile file = GgufFile::open(resolve_model(chosen_model(options.model, options.hub)));
  const GgufMetadata metadata = file.metadata();
  const Architecture* architecture = architecture_of(file);
  const ModelConfig config =
      architecture != nullptr ? architecture->config(metadata) : read_llama_config(metadata);
  const Vocabulary vocabulary = Vocabulary::load(metadata);
  const bool has_template = ChatTemplate::from(metadata).has_value();
  const Where where = placed(file, options);
  const bool is_ours = architecture != nullptr && !where.by_libllama;
  if (options.json) {
    nlohmann::ordered_json object = to_json(file, config, vocabulary, has_template);
    object["computed_by"] = is_ours ? "forerun" : "libllama";
    object["placement"] = where.text;
    if (options.metadata) {
      for (const std::string& key : metadata.keys()) object["metadata"][key] = metadata.describe(key);
    }
    print_json(object);
    return;
  }
  print_text(file, config, vocabulary, has_template);
  print_row("placement", where.text);
  print_row("computed by", is_ours ? kByForerun : kByLibllama);
  if (!options.metadata) return;
  std::printf("\n");
  for (const std::string& key : metadata.keys()) {
    const std::string value =
        nlohmann::ordered_json(metadata.describe(key))
            .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    std::printf("%s = %s\n", printable(key).c_str(), printable(value).c_str());
  }
}

}  // namespace

void add_info_command(CLI::App& app) {
  auto options = std::make_shared<InfoOptions>();
  CLI::App* command = app.add_subcommand("info", "Show what a model file holds");
  CLI::Option* named = command->add_option("model", options->model, "Path of a GGUF file, or a name");
  add_hub_options(*command, options->hub, named->capture_default_str());
  command->add_option("--device", options->device, "Where it would be computed: auto, cpu, cuda, cuda:1")
      ->capture_default_str();
  command->add_option("-c,--ctx-size", options->n_context, "Tokens that the context would hold")
      ->check(CLI::Range(1, kMaxContext));
  add_placement_options(*command, options->placement);
  command->add_flag("--metadata", options->metadata, "Show every metadata key too");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->callback([options] { info(*options); });
}

}  // namespace forerun
