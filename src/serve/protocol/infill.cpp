#include "serve/protocol/infill.h"

#include <algorithm>

#include "serve/protocol/answer_fields.h"
#include "serve/protocol/context_error.h"
#include "serve/protocol/infill_prompt.h"
#include "serve/protocol/llama_completion.h"

namespace forerun {
namespace {

// Tokens that the prompt may have: the answer gets as many as it may have, but half of the context at
// most, and a quarter where nothing is said.
int max_prompt(const AnswerFields& fields, int n_context) {
  const int wanted = fields.generation.max_tokens;
  return n_context - (wanted < 0 ? n_context / 4 : std::clamp(wanted, 1, std::max(1, n_context / 2)));
}

}  // namespace

void answer_infill(const std::shared_ptr<Exchange>& exchange, const ModelContext& model) {
  check_infill(model.tokenizer);
  const Json body = parse_object(exchange->request().body);
  const InfillParts parts = read_infill_parts(body);
  const AnswerFields fields = read_answer_fields(body, model.options.answers, model.tokenizer);
  auto prompt = infill_prompt(parts, model.tokenizer, max_prompt(fields, model.n_context));
  if (!prompt) {
    const auto begun = model.tokenizer.tokenize(parts.begun);
    throw ContextError(static_cast<int>(begun.size()), model.n_context);
  }
  answer_llama_prompts(exchange, model, fields, {.prompts = {std::move(*prompt)}});
}

}  // namespace forerun
