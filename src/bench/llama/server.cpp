#include "bench/llama/server.h"

#include <chrono>
#include <thread>

#include "bench/llama/http_client.h"
#include "core/error.h"
#include "core/stopwatch.h"

namespace forerun {
namespace {

using Json = nlohmann::json;

constexpr int kHealthTimeoutS = 5;
constexpr int kAnswerTimeoutS = 3600;

std::vector<std::string> command_of(const LlamaServerOptions& options, int port) {
  std::vector<std::string> command{options.program};
  if (!options.command.empty()) command.push_back(options.command);
  for (const char* part : {"--host", "127.0.0.1", "--port"}) command.emplace_back(part);
  command.push_back(std::to_string(port));
  command.insert(command.end(), options.arguments.begin(), options.arguments.end());
  return command;
}

// The message of {"error": {"message": ...}}, or the body itself.
std::string error_words(const HttpAnswer& answer) {
  constexpr size_t kMost = 200;
  const Json body = Json::parse(answer.body, nullptr, /*allow_exceptions=*/false);
  const Json::json_pointer message("/error/message");
  if (body.is_object() && body.contains(message) && body[message].is_string()) {
    return body[message].get<std::string>();
  }
  return answer.body.substr(0, kMost);
}

}  // namespace

LlamaServer::LlamaServer(const LlamaServerOptions& options)
    : program_(options.program), port_(free_port()), process_(command_of(options, port_)) {
  await_ready(options.wait_s);
}

void LlamaServer::await_ready(int wait_s) {
  using namespace std::chrono_literals;
  const Stopwatch watch;
  while (process_.is_running()) {
    const auto health = http_get(port_, "/health", kHealthTimeoutS);
    if (health && health->status == 200) return;
    if (watch.seconds() > wait_s) {
      fail(ErrorCode::kUnsupported,
           "{} was not ready after {} s (--llama-wait gives it longer); its last line: {}", program_,
           wait_s, process_.last_line());
    }
    std::this_thread::sleep_for(20ms);
  }
  fail(ErrorCode::kUnsupported, "{} {} before it was ready; its last line: {}", program_,
       process_.end_words(), process_.last_line());
}

Json LlamaServer::complete(const Json& request) const {
  const auto answer = http_post_json(port_, "/completion", request.dump(), kAnswerTimeoutS);
  if (!answer) {
    fail(ErrorCode::kIo, "{} did not answer a prompt; its last line: {}", program_,
         process_.last_line());
  }
  if (answer->status != 200) {
    fail(ErrorCode::kUnsupported, "{} did not answer a prompt, but with status {}: {}", program_,
         answer->status, error_words(*answer));
  }
  Json object = Json::parse(answer->body, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) {
    fail(ErrorCode::kUnsupported, "{} answered with no JSON object: --llama-server takes llama-server",
         program_);
  }
  return object;
}

std::string output_of_llama_server(const std::string& program, const std::string& flag) {
  ChildProcess process({program, flag});
  if (!process.wait()) {
    fail(ErrorCode::kUnsupported, "{} {} {}; its last line: {}", program, flag, process.end_words(),
         process.last_line());
  }
  return process.output();
}

}  // namespace forerun
