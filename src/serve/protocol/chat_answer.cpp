#include "serve/protocol/chat_answer.h"

#include "serve/answer/answer_job.h"
#include "serve/protocol/answer_requests.h"

namespace forerun {

void answer_chat(const std::shared_ptr<Exchange>& exchange, const ModelContext& model,
                 const Json& request, const MakeChatWriter& make_writer) {
  PreparedChat chat = prepare_chat(request, model);
  AnswerFields fields = read_answer_fields(request, model.options.answers, model.tokenizer);
  add_chat_fields(chat.prompt, model.tokenizer, fields);
  std::vector<Request> requests = answer_requests(model, {chat.tokens}, fields);
  AnswerJob::start(exchange, model.engine, std::move(requests), make_writer(std::move(chat), fields));
}

}  // namespace forerun
