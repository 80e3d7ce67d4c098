#include "serve/protocol/embeddings.h"

#include <utility>
#include <vector>

#include "core/error.h"
#include "serve/answer/answer_job.h"
#include "serve/answer/event_writer.h"
#include "serve/protocol/context_error.h"
#include "serve/protocol/prompt_field.h"
#include "serve/protocol/vector_json.h"

namespace forerun {
namespace {

struct EmbeddingFields {
  std::vector<std::vector<TokenId>> inputs;
  bool is_openai = true;
  bool is_base64 = false;
  int norm = 2;  // see normalize()
  int priority = 0;
};

Pooling pooling_of(const ModelContext& model) {
  if (model.options.pooling) return *model.options.pooling;
  return model.facts.pooling.value_or(Pooling::kLast);
}

std::vector<std::vector<TokenId>> read_inputs(const Json& body, const char* name,
                                              const ModelContext& model) {
  const Json* field = find_field(body, name);
  if (field == nullptr) {
    fail(ErrorCode::kInvalidArgument, "\"input\" is missing: a text, an array of texts, or tokens");
  }
  auto inputs =
      read_prompt_field(*field, model.tokenizer, {.name = name, .may_be_empty = false}).prompts;
  // Of all texts together where each token has a vector in the answer.
  const bool counts_all = pooling_of(model) == Pooling::kNone;
  size_t n_tokens = 0;
  for (const auto& input : inputs) {
    n_tokens = input.size() + (counts_all ? n_tokens : 0);
    if (n_tokens > static_cast<size_t>(model.n_context)) {
      throw ContextError(static_cast<int>(n_tokens), model.n_context);
    }
  }
  return inputs;
}

void check_dimensions(const Json& body, const ModelContext& model) {
  const auto wanted = int_field(body, "dimensions", 1);
  if (!wanted || *wanted == model.facts.n_embd) return;
  fail(ErrorCode::kInvalidArgument,
       "\"dimensions\" is {}, but vectors of this model have {}: leave it out", *wanted,
       model.facts.n_embd);
}

EmbeddingFields read_fields(const Json& body, const ModelContext& model, bool is_openai) {
  EmbeddingFields fields;
  // "content" is llama-server's own, wherever it is sent.
  const bool has_input = find_field(body, "input") != nullptr;
  const bool has_content = !has_input && find_field(body, "content") != nullptr;
  fields.is_openai = is_openai && !has_content;
  if (fields.is_openai && pooling_of(model) == Pooling::kNone) {
    fail(ErrorCode::kInvalidArgument,
         "this server makes a vector of each token (--pooling none): ask for them at /embedding");
  }
  const std::string format = string_field(body, "encoding_format").value_or("float");
  if (format != "float" && format != "base64") {
    fail(ErrorCode::kInvalidArgument, "\"encoding_format\" must be \"float\" or \"base64\"");
  }
  fields.is_base64 = format == "base64";
  check_dimensions(body, model);
  fields.norm = int_field(body, "embd_normalize", -1, 1000).value_or(2);
  fields.priority = int_field(body, "priority", -1000, 1000).value_or(0);
  fields.inputs = read_inputs(body, has_content ? "content" : "input", model);
  return fields;
}

class EmbeddingsWriter final : public EventWriter {
 public:
  EmbeddingsWriter(std::shared_ptr<Exchange> exchange, const ModelContext& model, EmbeddingFields fields)
      : EventWriter(std::move(exchange)),
        model_(model),
        fields_(std::move(fields)),
        entries_(fields_.inputs.size()) {}

  bool streams() const override { return false; }
  void part(int, const AnswerPart&) override {}

  void finished(int choice, const Generation& generation) override {
    Json& entry = entries_[static_cast<size_t>(choice)];
    if (fields_.is_openai) {
      const std::vector<float> vector = normalized(generation.embedding);
      entry = {{"object", "embedding"}, {"index", choice}};
      entry["embedding"] = fields_.is_base64 ? Json(base64_of(vector)) : vector_json(vector);
      if (fields_.is_base64) entry["encoding_format"] = "base64";
    } else {
      entry = {{"index", choice}, {"embedding", rows(generation.embedding)}};
    }
  }

  void all_finished() override {
    if (!fields_.is_openai) return respond(Json(std::move(entries_)));
    size_t n_tokens = 0;
    for (const auto& input : fields_.inputs) n_tokens += input.size();
    respond({{"object", "list"},
             {"model", model_.id()},
             {"usage", {{"prompt_tokens", n_tokens}, {"total_tokens", n_tokens}}},
             {"data", std::move(entries_)}});
  }

 private:
  std::vector<float> normalized(std::vector<float> vector) const {
    normalize(vector, fields_.norm);
    return vector;
  }

  // One vector, or one for each token; these are not scaled, as llama-server has it.
  Json rows(const std::vector<float>& embedding) const {
    if (pooling_of(model_) != Pooling::kNone) return Json::array({vector_json(normalized(embedding))});
    const auto n_embd = static_cast<size_t>(model_.facts.n_embd);
    Json result = Json::array();
    for (size_t at = 0; at < embedding.size(); at += n_embd) {
      result.push_back(vector_json(std::span(embedding).subspan(at, n_embd)));
    }
    return result;
  }

  const ModelContext& model_;
  EmbeddingFields fields_;
  std::vector<Json> entries_;
};

void answer_embeddings(const std::shared_ptr<Exchange>& exchange, const ModelContext& model,
                       bool is_openai) {
  EmbeddingFields fields = read_fields(parse_object(exchange->request().body), model, is_openai);
  std::vector<Request> requests;
  for (const auto& input : fields.inputs) {
    requests.push_back({.prompt = input, .priority = fields.priority, .embedding = pooling_of(model)});
  }
  AnswerJob::start(exchange, model.engine, std::move(requests),
                   std::make_unique<EmbeddingsWriter>(exchange, model, std::move(fields)));
}

}  // namespace

void answer_openai_embeddings(const std::shared_ptr<Exchange>& exchange, const ModelContext& model) {
  answer_embeddings(exchange, model, /*is_openai=*/true);
}

void answer_llama_embeddings(const std::shared_ptr<Exchange>& exchange, const ModelContext& model) {
  answer_embeddings(exchange, model, /*is_openai=*/false);
}

}  // namespace forerun
