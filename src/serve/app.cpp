#include "serve/app.h"

#include "core/error.h"
#include "gguf/gguf_file.h"
#include "serve/answer/answer_error.h"
#include "serve/http/error_response.h"
#include "serve/metrics.h"
#include "serve/page/page.h"
#include "serve/protocol/answer_json.h"
#include "serve/protocol/anthropic_messages.h"
#include "serve/protocol/embeddings.h"
#include "serve/protocol/infill.h"
#include "serve/protocol/llama_completion.h"
#include "serve/protocol/openai_chat.h"
#include "serve/protocol/openai_completion.h"
#include "serve/protocol/openai_responses.h"
#include "serve/protocol/server_info.h"
#include "serve/protocol/token_endpoints.h"

namespace forerun {
namespace {

// Seconds after which a client who was sent away may try again.
constexpr const char* kRetryAfter = "1";

bool is_health(const std::string& path) {
  return path == "/health" || path == "/v1/health";
}

// In the form that the path's clients read.
HttpResponse refusal(const HttpRequest& request, int status, const std::string& message) {
  const bool is_anthropic = request.path.starts_with("/v1/messages");
  return is_anthropic ? anthropic_error(status, message) : error_response(status, message);
}

HttpResponse not_enabled(const char* what, const char* flag) {
  return error_response(501,
                        fmt::format("this server does not show its {}: start it with {}", what, flag));
}

// That of the model's file, or another that was named.
ChatFormat chat_format(const ServeOptions& options, const Engine& engine) {
  if (options.chat_template.empty())
    return ChatFormat::from(GgufFile::open(engine.model().path).metadata());
  const Tokenizer tokenizer = engine.tokenizer();
  const auto text = [&](const std::optional<TokenId>& token) {
    return token ? tokenizer.piece(*token) : std::string();
  };
  return ChatFormat::from_source(options.chat_template, text(tokenizer.bos()), text(tokenizer.eos()));
}

}  // namespace

App::App(const ServeOptions& options, EngineThread& engine)
    : options_(options),
      engine_(engine),
      access_(options.api_keys, options.tenants, options.cors_origins) {
  add_work({"/completion", "/completions"}, answer_llama_completion);
  add_work({"/v1/completions"}, answer_openai_completion);
  add_work({"/v1/chat/completions", "/chat/completions"}, answer_openai_chat);
  add_work({"/v1/responses", "/responses"}, answer_openai_responses);
  add_work({"/v1/messages"}, answer_anthropic_messages);
  add_work({"/infill"}, answer_infill);
  add_work({"/v1/embeddings"}, answer_openai_embeddings);
  add_work({"/embedding", "/embeddings"}, answer_llama_embeddings);
  add_work({"/v1/messages/count_tokens"}, count_anthropic_tokens);
  add("POST", {"/v1/responses/input_tokens", "/responses/input_tokens"}, count_responses_tokens);
  add("POST", {"/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"},
      count_chat_tokens);
  add("POST", {"/apply-template"}, apply_template);
  add("POST", {"/tokenize"}, tokenize);
  add("POST", {"/detokenize"}, detokenize);
  const auto of_model = [](auto show) {
    return [show](const HttpRequest&, const ModelContext& model) { return show(model); };
  };
  add("GET", {"/v1/models", "/models"}, of_model(list_models));
  add("GET", {"/props"}, of_model(show_props));
  add("GET", {"/slots"}, of_model([](const ModelContext& model) {
        return model.options.shows_slots ? show_slots(model) : not_enabled("slots", "--slots");
      }));
  add("GET", {"/metrics"}, of_model([](const ModelContext& model) {
        return model.options.shows_metrics ? show_metrics(model) : not_enabled("metrics", "--metrics");
      }));
}

void App::add(const std::string& method, std::initializer_list<const char*> paths, Now show) {
  const Route route{.answer = [show = std::move(show)](const std::shared_ptr<Exchange>& exchange,
                                                       const ModelContext& model) {
    exchange->respond(show(exchange->request(), model));
  }};
  for (const char* path : paths) routes_[{method, path}] = route;
}

void App::add_work(std::initializer_list<const char*> paths, const Later& later) {
  for (const char* path : paths) routes_[{"POST", path}] = {.answer = later, .is_work = true};
}

void App::set_ready() {
  const Engine& engine = *engine_.engine();
  std::vector<std::string> aliases = options_.aliases;
  if (aliases.empty()) aliases.push_back(engine.model().path.filename().string());
  ModelContext model{.engine = engine_,
                     .options = options_,
                     .facts = engine.model(),
                     .tokenizer = engine.tokenizer(),
                     .chat = chat_format(options_, engine),
                     .n_context = engine.n_context(),
                     .aliases = std::move(aliases),
                     .created = now_seconds()};
  models_.emplace("", model);
  for (const Tenant& tenant : options_.tenants) {
    model.tenant = tenant.name;
    models_.emplace(tenant.name, model);
  }
  is_ready_ = true;
}

void App::handle(const std::shared_ptr<Exchange>& exchange) {
  const HttpRequest& request = exchange->request();
  access_.add_cors_headers(*exchange);
  if (request.method == "OPTIONS") return exchange->respond({.content_type = "text/plain"});
  const std::string method = request.method == "HEAD" ? "GET" : request.method;
  if (options_.has_page && method == "GET") {
    if (auto page = show_page(request.path)) return exchange->respond(std::move(*page));
  }
  const auto who = access_.who(request);
  if (!who && !is_health(request.path)) {
    exchange->add_header("WWW-Authenticate", "Bearer");
    return exchange->respond(refusal(request, 401, "Invalid API Key"));
  }
  if (!is_ready_) return exchange->respond(refusal(request, 503, "Loading model"));
  if (method == "GET" && is_health(request.path)) {
    return exchange->respond({.body = R"({"status":"ok"})"});
  }
  const auto found = routes_.find({method, request.path});
  if (found != routes_.end()) return answer(found->second, exchange, models_.at(*who));
  const std::string allowed = methods_of(request.path);
  if (allowed.empty()) return exchange->respond(error_response(404, "File Not Found"));
  exchange->add_header("Allow", allowed);
  exchange->respond(error_response(405, fmt::format("{} is not for {}", request.path, request.method)));
}

std::string App::methods_of(const std::string& path) const {
  std::string methods;
  const bool is_shown = is_health(path) || (options_.has_page && show_page(path));
  if (is_shown || routes_.contains({"GET", path})) methods += "GET, HEAD, ";
  if (routes_.contains({"POST", path})) methods += "POST, ";
  return methods.empty() ? "" : methods + "OPTIONS";
}

bool App::is_full() const {
  return engine_.engine()->statistics().n_waiting >= options_.max_waiting;
}

void App::answer(const Route& route, const std::shared_ptr<Exchange>& exchange,
                 const ModelContext& model) {
  if (route.is_work && is_full()) {
    exchange->add_header("Retry-After", kRetryAfter);
    return exchange->respond(
        refusal(exchange->request(), 503, "too many requests wait already: try again later"));
  }
  try {
    route.answer(exchange, model);
  } catch (...) {
    exchange->respond(answer_error(std::current_exception()).response());
  }
}

}  // namespace forerun
