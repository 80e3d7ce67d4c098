#include "serve/protocol/llama_completion.h"

#include "api/generation_json.h"
#include "core/error.h"
#include "serve/answer/answer_job.h"
#include "serve/answer/event_writer.h"
#include "serve/protocol/answer_fields.h"
#include "serve/protocol/answer_json.h"
#include "serve/protocol/answer_requests.h"
#include "serve/protocol/prompt_field.h"

namespace forerun {
namespace {

std::string_view stop_type(StopReason reason) {
  switch (reason) {
    case StopReason::kEndOfText: return "eos";
    case StopReason::kStop: return "word";
    case StopReason::kLimit:
    case StopReason::kContextFull: return "limit";
    case StopReason::kCancelled: return "none";
  }
  return "none";
}

// Of an object only these fields; "a/b" is b of a, and keeps that name.
Json with_fields(const Json& object, const std::vector<std::string>& wanted) {
  if (wanted.empty()) return object;
  Json result = Json::object();
  for (const std::string& name : wanted) {
    const Json* at = &object;
    std::string_view left = name;
    while (at != nullptr && !left.empty()) {
      const std::string step(left.substr(0, left.find('/')));
      left.remove_prefix(std::min(left.size(), step.size() + 1));
      const auto found = at->is_object() ? at->find(step) : at->end();
      at = at->is_object() && found != at->end() ? &*found : nullptr;
    }
    if (at != nullptr) result[name] = *at;
  }
  return result;
}

class LlamaCompletionWriter final : public EventWriter {
 public:
  LlamaCompletionWriter(std::shared_ptr<Exchange> exchange, const ModelContext& model,
                        AnswerFields fields, PromptField prompts)
      : EventWriter(std::move(exchange)),
        model_(model),
        fields_(std::move(fields)),
        prompts_(std::move(prompts)) {
    results_.resize(prompts_.prompts.size() * static_cast<size_t>(fields_.n_choices));
  }

  bool streams() const override { return fields_.streams; }

  bool wants_progress() const override { return fields_.streams && fields_.returns_progress; }
  void progress(int choice, const PromptProgress& progress) override {
    Json event = {{"index", choice},
                  {"content", ""},
                  {"tokens", Json::array()},
                  {"stop", false},
                  {"id_slot", choice},
                  {"tokens_predicted", 0},
                  {"tokens_evaluated", prompt_of(choice).size()}};
    add_progress(progress, fields_, event);
    send_event(event);
  }

  // An event for each token where its probabilities are wanted, else one for what a pass gave.
  void part(int choice, const AnswerPart& part) override {
    if (!fields_.generation.sampling.n_logprobs) {
      return send_part(choice, part, 0, part.tokens.size());
    }
    for (size_t i = 0; i < part.tokens.size(); ++i) send_part(choice, part, i, i + 1);
  }

  void finished(int choice, const Generation& generation) override {
    Json result = whole(choice, generation);
    if (fields_.streams) {
      result["content"] = "";
      result["tokens"] = Json::array();
      send_event(with_fields(result, fields_.response_fields));
    } else {
      results_[static_cast<size_t>(choice)] = with_fields(result, fields_.response_fields);
    }
  }

  void all_finished() override {
    if (fields_.streams) return finish_stream();
    const bool is_one = results_.size() == 1 && !prompts_.is_list;
    respond(is_one ? results_.front() : Json(results_));
  }

 private:
  void send_part(int choice, const AnswerPart& part, size_t first, size_t end) {
    const size_t text_begin = first == 0 ? 0 : part.ends[first - 1];
    const size_t text_end = end == part.tokens.size() ? part.text.size() : part.ends[end - 1];
    const auto of = [&](const auto& all) { return std::span(all).subspan(first, end - first); };
    Json event = {{"index", choice},
                  {"content", part.text.substr(text_begin, text_end - text_begin)},
                  {"tokens", token_numbers(of(part.tokens))},
                  {"stop", false},
                  {"id_slot", choice},
                  {"tokens_predicted", n_predicted_ += static_cast<int>(end - first)},
                  {"tokens_evaluated", prompt_of(choice).size()},
                  {"origins", origins_json(of(part.origins))}};
    if (!part.logprobs.empty()) {
      event["completion_probabilities"] = probabilities(of(part.logprobs));
    }
    if (fields_.times_each) event["timings"] = answer_timings(part.timings, part.speculation);
    send_event(event);
  }

  Json probabilities(std::span<const TokenLogprobs> logprobs) const {
    return fields_.generation.sampling.logprobs_of_draws ? draws_json(logprobs, model_.tokenizer)
                                                         : logprobs_json(logprobs, model_.tokenizer);
  }

  const std::vector<TokenId>& prompt_of(int choice) const {
    return prompts_.prompts[static_cast<size_t>(choice / fields_.n_choices)];
  }

  Json whole(int choice, const Generation& generation) const {
    const std::vector<TokenId>& prompt = prompt_of(choice);
    const bool returns_tokens = fields_.returns_tokens;
    Json result = {{"index", choice},
                   {"content", generation.text},
                   {"tokens", returns_tokens ? Json(token_numbers(generation.tokens)) : Json::array()},
                   {"id_slot", choice},
                   {"stop", true},
                   {"model", model_.id()},
                   {"tokens_predicted", generation.timings.n_predicted},
                   {"tokens_evaluated", prompt.size()},
                   {"generation_settings", settings_json(fields_, generation.seed, model_.tokenizer)},
                   {"prompt", text_with_names(prompt, model_.tokenizer)},
                   {"has_new_line", generation.text.find('\n') != std::string::npos},
                   {"truncated", generation.stop_reason == StopReason::kContextFull},
                   {"stop_type", stop_type(generation.stop_reason)},
                   {"stopping_word", generation.stopping_word},
                   {"tokens_cached", prompt.size() + generation.tokens.size() - 1},
                   {"timings", answer_timings(generation)},
                   {"origins", origins_json(generation.origins)}};
    if (!generation.logprobs.empty() && !fields_.streams) {
      result["completion_probabilities"] = probabilities(generation.logprobs);
    }
    return result;
  }

  const ModelContext& model_;
  AnswerFields fields_;
  PromptField prompts_;
  int n_predicted_ = 0;
  std::vector<Json> results_;
};

}  // namespace

void answer_llama_prompts(const std::shared_ptr<Exchange>& exchange, const ModelContext& model,
                          const AnswerFields& fields, const PromptField& prompts) {
  std::vector<Request> requests = answer_requests(model, prompts.prompts, fields);
  AnswerJob::start(exchange, model.engine, std::move(requests),
                   std::make_unique<LlamaCompletionWriter>(exchange, model, fields, prompts));
}

void answer_llama_completion(const std::shared_ptr<Exchange>& exchange, const ModelContext& model) {
  const Json body = parse_object(exchange->request().body);
  const Json* prompt = find_field(body, "prompt");
  if (prompt == nullptr) fail(ErrorCode::kInvalidArgument, "\"prompt\" is missing");
  const PromptField prompts = read_prompt_field(*prompt, model.tokenizer);
  const AnswerFields fields = read_answer_fields(body, model.options.answers, model.tokenizer);
  answer_llama_prompts(exchange, model, fields, prompts);
}

}  // namespace forerun
