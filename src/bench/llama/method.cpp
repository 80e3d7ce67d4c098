#include "bench/llama/method.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <future>
#include <limits>
#include <span>

#include "bench/llama/server.h"
#include "bench/llama/time_span.h"
#include "core/error.h"
#include "core/stopwatch.h"

namespace forerun {
namespace {

using Json = nlohmann::json;

constexpr std::string_view kNgramPrefix = "ngram-";

// ---- Reading answers ----

[[noreturn]] void fail_field(std::string_view name) {
  fail(ErrorCode::kUnsupported,
       "llama-server's answer has no usable field '{}': give a llama-server that knows --spec-type",
       name);
}

double number_of(const Json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_number()) fail_field(name);
  return found->get<double>();
}

int64_t count_of(const Json& object, const char* name) {
  return object.contains(name) ? static_cast<int64_t>(number_of(object, name)) : 0;
}

std::vector<TokenId> tokens_of(const Json& answer) {
  const auto found = answer.find("tokens");
  if (found == answer.end() || !found->is_array()) fail_field("tokens");
  std::vector<TokenId> tokens;
  for (const Json& token : *found) {
    if (!token.is_number_integer()) fail_field("tokens");
    tokens.push_back(TokenId{token.get<int32_t>()});
  }
  return tokens;
}

// ---- The method ----

struct TimedAnswer {
  SpecAnswer answer;
  double end_ms;  // after the batch was begun
};

// While some prompt is read, nothing is counted as decoding: in llama-server's favour, since the others
// go on.
std::vector<SpecAnswer> with_shared_time(std::vector<TimedAnswer> timed) {
  std::vector<TimeSpan> reading;
  std::vector<SpecAnswer> answers;
  double total_ms = 0;
  for (auto& [answer, end_ms] : timed) {
    total_ms = std::max(total_ms, end_ms);
    const double first_ms = end_ms - answer.run.decode_ms;  // the first token
    reading.push_back({.begin = first_ms - answer.run.prompt_ms, .end = first_ms});
    answers.push_back(std::move(answer));
  }
  const double prompt_ms = covered(std::move(reading));
  share_time(answers, {.prompt_ms = prompt_ms, .decode_ms = std::max(0.0, total_ms - prompt_ms)});
  return answers;
}

class LlamaMethod : public SpecMethod {
 public:
  LlamaMethod(const LlamaMethodOptions& options, const std::string& mode)
      : name_(std::string(kLlamaPrefix) + mode),
        request_(completion_request(options.generation)),
        server_({.program = options.program,
                 .arguments = llama_arguments(options, mode),
                 .wait_s = options.wait_s}) {}

  const std::string& name() const override { return name_; }

  std::vector<SpecAnswer> answer(std::span<const std::vector<TokenId>> prompts) override {
    const auto ask = [this](const std::vector<TokenId>& prompt) {
      Json request = request_;
      for (const TokenId token : prompt) request["prompt"].push_back(to_int(token));
      return completion_answer(server_.complete(request));
    };
    if (prompts.size() == 1) return {ask(prompts[0])};
    const Stopwatch watch;
    std::vector<std::future<TimedAnswer>> waiting;
    for (const std::vector<TokenId>& prompt : prompts) {
      waiting.push_back(std::async(std::launch::async, [&] {
        SpecAnswer answer = ask(prompt);
        return TimedAnswer{.answer = std::move(answer), .end_ms = watch.ms()};
      }));
    }
    std::vector<TimedAnswer> timed;
    for (std::future<TimedAnswer>& future : waiting) timed.push_back(future.get());
    return with_shared_time(std::move(timed));
  }

 private:
  std::string name_;
  Json request_;  // all but the prompt
  LlamaServer server_;
};

}  // namespace

std::vector<std::string> modes_in_help(std::string_view help) {
  constexpr std::string_view kFlag = "--spec-type ";
  std::vector<std::string> modes{std::string(kLlamaPlainMode)};
  const size_t flag = help.find(kFlag);
  if (flag == help.npos) return modes;
  std::string name;
  for (const char c : std::string(help.substr(flag + kFlag.size())) + " ") {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-') {
      name.push_back(c);
      continue;
    }
    if (name.starts_with(kNgramPrefix)) modes.push_back(name);
    name.clear();
    if (std::isspace(static_cast<unsigned char>(c)) != 0) break;
  }
  return modes;
}

std::vector<std::string> llama_modes(const std::string& program,
                                     const std::vector<std::string>& wanted) {
  const std::vector<std::string> known = modes_in_help(output_of_llama_server(program, "--help"));
  if (wanted.empty()) return known;
  std::vector<std::string> modes{std::string(kLlamaPlainMode)};
  for (const std::string& mode : wanted) {
    if (std::find(known.begin(), known.end(), mode) == known.end()) {
      fail(ErrorCode::kInvalidArgument, "--llama-modes: {} has no mode '{}'; it has {}", program, mode,
           fmt::join(known, ", "));
    }
    if (std::find(modes.begin(), modes.end(), mode) == modes.end()) modes.push_back(mode);
  }
  return modes;
}

std::string llama_version(const std::string& program) {
  const std::string output = output_of_llama_server(program, "--version");
  constexpr std::string_view kLabel = "version: ";
  const size_t label = output.find(kLabel);
  if (label == output.npos) return "";
  const size_t start = label + kLabel.size();
  return output.substr(start, output.find('\n', start) - start);
}

std::vector<std::string> mode_arguments(const std::string& mode) {
  if (mode == kLlamaPlainMode) return {};
  std::vector<std::string> arguments{"--spec-type", mode};
  // Its defaults (n-grams of 12, drafts of 48) hardly ever find anything.
  if (mode == "ngram-simple") {
    arguments.insert(arguments.end(),
                     {"--spec-ngram-simple-size-n", "3", "--spec-ngram-simple-size-m", "8"});
  }
  return arguments;
}

std::vector<std::string> llama_arguments(const LlamaMethodOptions& options, const std::string& mode) {
  const bool is_cpu = options.device == "cpu";
  std::string device = is_cpu ? "none" : options.device;
  // "cuda:1" is CUDA1 there.
  std::erase(device, ':');
  if (!is_cpu) {
    std::transform(device.begin(), device.end(), device.begin(),
                   [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  }
  const std::string threads = std::to_string(options.n_threads);
  std::vector<std::string> arguments{
      "--model",         options.model,
      "--ctx-size",      std::to_string(options.n_context * options.n_parallel),
      "--parallel",      std::to_string(options.n_parallel),
      "--no-kv-unified",  // else one request could take the room of the others
      "--threads",       threads,
      "--threads-batch", threads,
      "--device",        device,
      "--n-gpu-layers",  is_cpu ? "0" : "999",
      "--cache-type-k",  options.kv_type,
      "--cache-type-v",  options.kv_type,
      "--cache-ram",     "0",  // every prompt is read as a whole
      "--no-webui"};
  const std::vector<std::string> own = mode_arguments(mode);
  arguments.insert(arguments.end(), own.begin(), own.end());
  return arguments;
}

Json completion_request(const GenerationOptions& options) {
  if (!options.stop_tokens.empty()) {
    fail(ErrorCode::kUnsupported,
         "llama-server has no --stop-token: leave it out, or give the text with --stop");
  }
  const SamplingOptions& sampling = options.sampling;
  Json request{{"n_predict", options.max_tokens},
               {"cache_prompt", false},
               {"return_tokens", true},
               {"stop", options.stop},
               {"ignore_eos", options.ignore_eos},
               {"temperature", sampling.temperature},
               {"top_k", sampling.top_k},
               {"top_p", sampling.top_p},
               {"min_p", sampling.min_p},
               {"repeat_penalty", sampling.repeat_penalty},
               {"repeat_last_n", sampling.repeat_last_n},
               {"presence_penalty", sampling.presence_penalty},
               {"frequency_penalty", sampling.frequency_penalty}};
  // It knows 32 bits of a seed, and all ones mean a random one.
  if (sampling.seed) request["seed"] = *sampling.seed % std::numeric_limits<uint32_t>::max();
  Json& biases = request["logit_bias"] = Json::array();
  for (const auto& [token, bias] : sampling.logit_bias) {
    const bool forbids = std::isinf(bias) && bias < 0;
    biases.push_back({to_int(token), forbids ? Json(false) : Json(bias)});
  }
  return request;
}

SpecAnswer completion_answer(const Json& answer) {
  const auto timings = answer.find("timings");
  if (timings == answer.end() || !timings->is_object()) fail_field("timings");
  const auto content = answer.find("content");
  if (content == answer.end() || !content->is_string()) fail_field("content");
  SpecAnswer result{.text = content->get<std::string>(), .run = {}};
  SpecRun& run = result.run;
  run.tokens = tokens_of(answer);
  run.prompt_ms = number_of(*timings, "prompt_ms");
  run.decode_ms = number_of(*timings, "predicted_ms");
  run.drafts.n_drafted = count_of(*timings, "draft_n");
  run.drafts.n_accepted = count_of(*timings, "draft_n_accepted");
  // The first token comes with the prompt; of the others, each pass gives one and those it
  // accepts.
  run.speculation.n_tokens = std::max<int64_t>(0, count_of(*timings, "predicted_n") - 1);
  run.speculation.n_steps = std::max<int64_t>(0, run.speculation.n_tokens - run.drafts.n_accepted);
  // Ours do not count the token that ends the text.
  if (answer.value("stop_type", Json()) == "eos" && !run.tokens.empty()) run.tokens.pop_back();
  return result;
}

std::unique_ptr<SpecMethod> make_llama_method(const LlamaMethodOptions& options,
                                              const std::string& mode) {
  return std::make_unique<LlamaMethod>(options, mode);
}

}  // namespace forerun
