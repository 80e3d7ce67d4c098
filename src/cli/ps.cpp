// forerun ps: which servers of this user run on this machine, and what they do.
#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/server_record.h"
#include "core/error.h"
#include "http_client/http_get.h"
#include "text/printable.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kMaxMetricsBytes = 1 << 20;

struct ServerState {
  ServerFacts facts;
  std::string state;  // "ready", "loading", "silent"
  // What it shows without a key.
  std::optional<int> n_running = {};
  std::optional<int> n_waiting = {};
  std::optional<double> tokens_per_second = {};
};

// Nothing secret is sent, so that it does not matter who has vouched for the server's certificate.
HttpOptions local_options() {
  return {.timeout = std::chrono::milliseconds(2000), .verifies = false};
}

std::optional<double> metric(std::string_view text, std::string_view name) {
  const std::string start = fmt::format("\n{} ", name);
  const size_t at = text.find(start);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string line(text.substr(at + start.size(), 32));
  return std::strtod(line.c_str(), nullptr);
}

void ask_metrics(ServerState& server) {
  HttpGet get(parse_url(server.facts.url + "/metrics"), {}, local_options());
  if (get.status() != 200) return;
  const std::string text = get.read_all(kMaxMetricsBytes);
  const auto count = [&](std::string_view name) -> std::optional<int> {
    const auto value = metric(text, name);
    return value ? std::optional(static_cast<int>(*value)) : std::nullopt;
  };
  server.n_running = count("llamacpp:requests_processing");
  server.n_waiting = count("llamacpp:requests_deferred");
  server.tokens_per_second = metric(text, "llamacpp:predicted_tokens_seconds");
}

ServerState state_of(ServerFacts facts) {
  ServerState server{.facts = std::move(facts), .state = "silent"};
  try {
    const HttpGet health(parse_url(server.facts.url + "/health"), {}, local_options());
    server.state = health.status() == 200 ? "ready" : "loading";
    if (server.state == "ready") ask_metrics(server);
  } catch (const ConnectionLost&) {
    // It has ended, or has no time to answer: what is known is shown.
  } catch (const Error&) {
  }
  return server;
}

template <typename Value>
Json json_or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json();
}

void print_servers_json(const std::vector<ServerState>& servers) {
  Json list = Json::array();
  for (const ServerState& server : servers) {
    list.push_back({{"pid", server.facts.pid},
                    {"url", server.facts.url},
                    {"model", server.facts.model},
                    {"state", server.state},
                    {"running", json_or_null(server.n_running)},
                    {"waiting", json_or_null(server.n_waiting)},
                    {"tokens_per_second", json_or_null(server.tokens_per_second)}});
  }
  print_json({{"servers", list}});
}

void print_servers(const std::vector<ServerState>& servers) {
  if (servers.empty()) return fmt::print("no server of yours runs here ('forerun serve' starts one)\n");
  const auto number = [](const auto& value, const char* format) {
    return value ? fmt::format(fmt::runtime(format), *value) : std::string("-");
  };
  bool has_unknown = false;
  fmt::print("{:>7}  {:<28} {:<8} {:>7} {:>7} {:>8}  {}\n", "PID", "ADDRESS", "STATE", "RUNNING",
             "WAITING", "TOKENS/S", "MODEL");
  for (const ServerState& server : servers) {
    fmt::print("{:>7}  {:<28} {:<8} {:>7} {:>7} {:>8}  {}\n", server.facts.pid,
               printable(server.facts.url), server.state, number(server.n_running, "{}"),
               number(server.n_waiting, "{}"), number(server.tokens_per_second, "{:.1f}"),
               printable(server.facts.model));
    has_unknown |= server.state == "ready" && !server.n_running;
  }
  if (has_unknown)
    fmt::print("-: shown to those with the server's key alone, or to nobody (--no-metrics)\n");
}

}  // namespace

void add_ps_command(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("ps", "List the servers that run here, and what they do");
  command->add_flag("--json", *json, "Print one JSON object");
  command->callback([json] {
    std::vector<ServerState> servers;
    for (ServerFacts& facts : running_servers()) servers.push_back(state_of(std::move(facts)));
    if (*json) {
      print_servers_json(servers);
    } else {
      print_servers(servers);
    }
  });
}

}  // namespace forerun
