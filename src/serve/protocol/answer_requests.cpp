#include "serve/protocol/answer_requests.h"

#include "core/error.h"
#include "serve/protocol/prompt_field.h"

namespace forerun {

std::vector<Request> answer_requests(const ModelContext& model,
                                     const std::vector<std::vector<TokenId>>& prompts,
                                     const AnswerFields& fields) {
  std::vector<Request> requests;
  for (const auto& prompt : prompts) {
    check_fits(prompt, model.n_context);
    for (int choice = 0; choice < fields.n_choices; ++choice) {
      Request request{.prompt = prompt, .options = fields.generation};
      auto& seed = request.options.sampling.seed;
      if (seed) *seed += static_cast<uint64_t>(choice);
      request.priority = fields.priority;
      request.prediction = fields.prediction;
      request.may_reuse = fields.caches_prompt;
      request.max_draft = fields.speculative.max_draft;
      const auto& method = fields.speculative.method;
      const bool is_off = method == "none";
      if (is_off) request.max_draft = 0;
      // Also without drafts it says where the answer may be kept.
      request.speculation = model.engine.speculation(model.tenant, is_off ? std::nullopt : method);
      requests.push_back(std::move(request));
    }
  }
  return requests;
}

}  // namespace forerun
