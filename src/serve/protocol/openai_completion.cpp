#include "serve/protocol/openai_completion.h"

#include "api/generation_json.h"
#include "core/error.h"
#include "serve/answer/answer_job.h"
#include "serve/answer/event_writer.h"
#include "serve/protocol/answer_json.h"
#include "serve/protocol/answer_requests.h"
#include "serve/protocol/prompt_field.h"

namespace forerun {
namespace {

class OpenAiCompletionWriter final : public EventWriter {
 public:
  OpenAiCompletionWriter(std::shared_ptr<Exchange> exchange, const ModelContext& model,
                         AnswerFields fields, std::vector<std::vector<TokenId>> prompts)
      : EventWriter(std::move(exchange)),
        model_(model),
        fields_(std::move(fields)),
        prompts_(std::move(prompts)),
        choices_(prompts_.size() * static_cast<size_t>(fields_.n_choices)) {}

  bool streams() const override { return fields_.streams; }

  bool wants_progress() const override { return fields_.streams && fields_.returns_progress; }
  void progress(int choice, const PromptProgress& progress) override {
    Json event = object();
    event["choices"] = Json::array({choice_json(choice, "", {}, nullptr)});
    add_progress(progress, fields_, event);
    send_event(event);
  }

  void part(int choice, const AnswerPart& part) override {
    Json entry = choice_json(choice, part.text, part.logprobs, nullptr);
    entry["origins"] = origins_json(part.origins);
    Json event = object();
    event["choices"] = Json::array({entry});
    if (fields_.times_each) event["timings"] = answer_timings(part.timings, part.speculation);
    send_event(event);
  }

  void finished(int choice, const Generation& generation) override {
    const auto prompt = static_cast<size_t>(choice / fields_.n_choices);
    // A prompt is counted once, however many choices there are.
    usage_.add(generation, choice % fields_.n_choices == 0 ? prompts_[prompt].size() : 0);
    timings_ = answer_timings(generation);
    const Json reason = finish_reason(generation.stop_reason);
    if (!fields_.streams) {
      Json& entry = choices_[static_cast<size_t>(choice)] =
          choice_json(choice, generation.text, generation.logprobs, reason);
      entry["origins"] = origins_json(generation.origins);
      return;
    }
    Json event = object();
    event["choices"] = Json::array({choice_json(choice, "", {}, reason)});
    event["timings"] = timings_;
    send_event(event);
  }

  void all_finished() override {
    Json result = object();
    result["usage"] = usage_.json();
    result["timings"] = timings_;
    if (!fields_.streams) {
      result["choices"] = choices_;
      return respond(result);
    }
    if (fields_.includes_usage) {
      result["choices"] = Json::array();
      send_event(result);
    }
    send_done();
    finish_stream();
  }

 private:
  Json object() const {
    return {{"id", id_},
            {"object", "text_completion"},
            {"created", created_},
            {"model", model_.id()},
            {"system_fingerprint", system_fingerprint()}};
  }

  Json choice_json(int choice, const std::string& text, const std::vector<TokenLogprobs>& logprobs,
                   const Json& reason) const {
    Json entry = {{"index", choice}, {"text", text}, {"logprobs", nullptr}, {"finish_reason", reason}};
    if (!logprobs.empty()) entry["logprobs"] = {{"content", logprobs_json(logprobs, model_.tokenizer)}};
    return entry;
  }

  const ModelContext& model_;
  AnswerFields fields_;
  std::vector<std::vector<TokenId>> prompts_;
  std::string id_ = new_id("cmpl-");
  int64_t created_ = now_seconds();
  Usage usage_;
  Json timings_;
  std::vector<Json> choices_;
};

}  // namespace

void answer_openai_completion(const std::shared_ptr<Exchange>& exchange, const ModelContext& model) {
  const Json body = parse_object(exchange->request().body);
  const Json* prompt = find_field(body, "prompt");
  if (prompt == nullptr) fail(ErrorCode::kInvalidArgument, "\"prompt\" is missing");
  for (const char* name : {"suffix", "echo"}) {
    const Json* field = find_field(body, name);
    if (field != nullptr && *field != Json(false) && *field != Json("")) {
      fail(ErrorCode::kUnsupported, "\"{}\" is not supported: leave it out", name);
    }
  }
  const PromptField prompts = read_prompt_field(*prompt, model.tokenizer);
  const AnswerFields fields = read_answer_fields(body, model.options.answers, model.tokenizer);
  std::vector<Request> requests = answer_requests(model, prompts.prompts, fields);
  AnswerJob::start(exchange, model.engine, std::move(requests),
                   std::make_unique<OpenAiCompletionWriter>(exchange, model, fields, prompts.prompts));
}

}  // namespace forerun
