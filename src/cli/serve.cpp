// forerun serve: answers over HTTP, for many at once.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "api/checked_options.h"
#include "cli/commands.h"
#include "cli/generation_options.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/server_record.h"
#include "cli/speculation_options.h"
#include "core/error.h"
#include "serve/server.h"

namespace forerun {
namespace {

// While others get tokens, a prompt is read for so long at a time.
constexpr int kPromptWaitMs = 150;

struct ServeFlags {
  ModelOptions model;
  GenerationFlags generation;
  SpeculationFlags speculation;
  ServeOptions serve;
  int n_parallel = 8;
  int n_cells = 0;
  int max_rows = 512;
  int prompt_wait_ms = kPromptWaitMs;
  std::string api_key_file;
  std::string tenants_file;
  std::string chat_template_file;
  std::string reasoning_format = "auto";
  std::string reasoning = "auto";
  std::string pooling;
};

std::vector<std::string> keys_of(const ServeFlags& flags) {
  std::vector<std::string> keys = flags.serve.api_keys;
  if (!flags.api_key_file.empty()) {
    std::ifstream file(flags.api_key_file);
    if (!file) fail(ErrorCode::kNotFound, "cannot read the file of keys {}", flags.api_key_file);
    for (std::string line; std::getline(file, line);) {
      if (!line.empty()) keys.push_back(line);
    }
    if (keys.empty())
      fail(ErrorCode::kInvalidArgument, "{} has no key: write one to a line", flags.api_key_file);
  }
  return keys;
}

// Under llama.cpp's names.
const std::map<std::string, Pooling>& poolings() {
  static const std::map<std::string, Pooling> by_name = {{"none", Pooling::kNone},
                                                         {"mean", Pooling::kMean},
                                                         {"cls", Pooling::kFirst},
                                                         {"last", Pooling::kLast}};
  return by_name;
}

std::string read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) fail(ErrorCode::kNotFound, "cannot read {}", path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

ServeOptions options_of(const ServeFlags& flags) {
  ServeOptions options = flags.serve;
  if (!flags.chat_template_file.empty()) options.chat_template = read_file(flags.chat_template_file);
  if (!flags.pooling.empty()) options.pooling = poolings().at(flags.pooling);
  options.separates_thoughts = flags.reasoning_format != "none";
  if (flags.reasoning != "auto") options.thinks = flags.reasoning == "on";
  options.answers.generation = generation_options(flags.generation);
  options.api_keys = keys_of(flags);
  if (!flags.tenants_file.empty()) options.tenants = read_tenants(flags.tenants_file);
  for (const Tenant& tenant : options.tenants) {
    for (const std::string& key : tenant.keys) {
      if (std::find(options.api_keys.begin(), options.api_keys.end(), key) == options.api_keys.end())
        continue;
      fail(ErrorCode::kInvalidArgument, "a key of \"{}\" in {} is everybody's too (--api-key)",
           tenant.name, flags.tenants_file);
    }
  }
  options.engine = engine_options(flags.model, flags.speculation.options());
  options.engine.n_parallel = flags.n_parallel;
  options.engine.n_cells = flags.n_cells;
  options.engine.max_rows = flags.max_rows;
  options.engine.prompt_wait_ms = flags.prompt_wait_ms;
  if (options.http.certificate_file.empty() != options.http.key_file.empty()) {
    fail(ErrorCode::kInvalidArgument, "TLS needs both --ssl-cert-file and --ssl-key-file");
  }
  return options;
}

std::string url_of(const ServeOptions& options, const std::string& host, int port) {
  return fmt::format("{}://{}:{}", options.http.certificate_file.empty() ? "http" : "https",
                     host.find(':') != std::string::npos ? "[" + host + "]" : host, port);
}

// For `forerun ps`, without which it serves as well.
std::optional<ServerRecord> record_of(const ServeOptions& options, int port) {
  const std::string& host = options.http.host;
  // An address that stands for all of this machine's.
  const std::string own = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host;
  const std::string model = options.aliases.empty()
                                ? std::filesystem::path(options.engine.model).filename().string()
                                : options.aliases.front();
  try {
    return std::optional<ServerRecord>(
        std::in_place,
        ServerFacts{.pid = ::getpid(), .url = url_of(options, own, port), .model = model});
  } catch (const std::exception& error) {
    print_warning(fmt::format("{}; 'forerun ps' will not show this server", error.what()));
    return std::nullopt;
  }
}

void serve(const ServeFlags& flags) {
  flags.speculation.check();
  flags.speculation.warn_of_unused();
  const ServeOptions options = options_of(flags);
  Server server(options);
  const bool is_open = options.api_keys.empty() && options.tenants.empty() &&
                       options.http.host != "127.0.0.1" && options.http.host != "::1" &&
                       options.http.host != "localhost";
  if (is_open) print_warning("whoever reaches this address may use the model: --api-key asks for a key");
  const std::string url = url_of(options, options.http.host, server.port());
  const std::optional<ServerRecord> record = record_of(options, server.port());
  fmt::print(stderr, "forerun: loading {}\n", options.engine.model);
  server.run([&] { fmt::print(stderr, "forerun: serving on {}\n", url); });
}

}  // namespace

void add_serve_command(CLI::App& app) {
  auto flags = std::make_shared<ServeFlags>();
  CLI::App* command = app.add_subcommand("serve", "Answer over HTTP, for many at once");
  HttpServerOptions& http = flags->serve.http;
  command->add_option("--host", http.host, "Address to listen on")->capture_default_str();
  command->add_option("--port", http.port, "Port to listen on (0: one that is free)")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command
      ->add_option("-P,--parallel", flags->n_parallel, "Requests that are answered at once; others wait")
      ->check(CLI::Range(1, kMaxParallel))
      ->capture_default_str();
  command
      ->add_option("--cells", flags->n_cells,
                   "Tokens that the cache has room for, of all requests and of earlier texts (default: "
                   "a context for each of --parallel, or what memory allows)")
      ->check(CLI::Range(1, 1 << 30));
  command->add_option("--batch-size", flags->max_rows, "Tokens that one pass reads at most")
      ->check(CLI::Range(16, 4096))
      ->capture_default_str();
  command
      ->add_option("--prompt-wait", flags->prompt_wait_ms,
                   "Milliseconds that prompts of others may take of a pass while somebody gets tokens "
                   "(0: no limit)")
      ->check(CLI::Range(0, 60000))
      ->capture_default_str();
  command
      ->add_option("--max-waiting", flags->serve.max_waiting,
                   "Requests that may wait; more are sent away")
      ->check(CLI::Range(1, 1000000))
      ->capture_default_str();
  command->add_option("-a,--alias", flags->serve.aliases, "Names that the model is listed by")
      ->delimiter(',');
  command->add_option("--tags", flags->serve.tags, "Words that the model is listed with")
      ->delimiter(',');
  command->add_option(
      "--chat-template", flags->serve.chat_template,
      "Another chat template than the model's: its source, or a name (chatml, llama3, ...)");
  command->add_option("--chat-template-file", flags->chat_template_file, "A file with such a template");
  command
      ->add_option("--reasoning-format", flags->reasoning_format,
                   "auto: what a model thinks apart from its answer; none: as part of it")
      ->check(CLI::IsMember({"auto", "deepseek", "none"}))
      ->capture_default_str();
  command
      ->add_option(
          "--pooling", flags->pooling,
          "How the vectors of a text's tokens become one: their mean, the first (cls), the last; "
          "none: not at all (default: as the model's file says, else last)")
      ->check(CLI::IsMember(poolings()));
  command->add_option("--api-key", flags->serve.api_keys,
                      "A key that clients must send; may come again");
  command->add_option("--api-key-file", flags->api_key_file, "A file of such keys, one to a line");
  command->add_option("--tenants", flags->tenants_file,
                      "A JSON file of keys that have datastores of their own");
  command->add_option("--ssl-cert-file", http.certificate_file, "Certificate for TLS (PEM)");
  command->add_option("--ssl-key-file", http.key_file, "Its key (PEM)");
  command
      ->add_option("--cors-origins", flags->serve.cors_origins,
                   "Whose pages may ask: *, localhost, or origins")
      ->capture_default_str();
  command
      ->add_option("--reasoning", flags->reasoning,
                   "Whether models that can do without do think, unless a request says so: on, off, or "
                   "auto, as their "
                   "template has it")
      ->check(CLI::IsMember({"on", "off", "auto"}))
      ->capture_default_str();
  command->add_flag("--verbose", flags->serve.is_verbose,
                    "Say in answers to chats what the model was given (__verbose)");
  command->add_flag("--slots,!--no-slots", flags->serve.shows_slots, "Show what runs at /slots");
  command->add_flag("--page,!--no-page", flags->serve.has_page, "Show a page to chat with at /");
  command->add_flag("--metrics,!--no-metrics", flags->serve.shows_metrics, "Show counters at /metrics");
  add_model_options(*command, flags->model);
  add_context_options(*command, flags->model);
  add_placement_options(*command, flags->model.placement);
  add_generation_options(*command, flags->generation);
  add_speculation_options(*command, flags->speculation);
  command->footer(
      "What flags say of sampling is for requests that do not say it themselves.\n"
      "Examples:\n"
      "  forerun serve -m model.gguf\n"
      "  curl localhost:8080/v1/chat/completions -d '{\"messages\": [{\"role\": \"user\", \"content\": "
      "\"Hello\"}]}'");
  command->callback([flags] { serve(*flags); });
}

}  // namespace forerun
