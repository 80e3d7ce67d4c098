#include "serve/answer/answer_job.h"

#include <utility>

namespace forerun {

void AnswerJob::start(const std::shared_ptr<Exchange>& exchange, EngineThread& engine,
                      std::vector<Request> choices, std::unique_ptr<AnswerWriter> writer) {
  const std::shared_ptr<AnswerJob> job(new AnswerJob(exchange, engine, std::move(writer)));
  exchange->on_gone([job] { job->cancel(); });
  job->submit(std::move(choices));
}

void AnswerJob::submit(std::vector<Request> choices) {
  const auto self = shared_from_this();
  try {
    for (size_t i = 0; i < choices.size(); ++i) {
      const int choice = static_cast<int>(i);
      if (writer_->streams()) {
        choices[i].on_chunk = [self, choice](const Chunk& chunk) {
          self->exchange_->post([self, choice, part = AnswerPart(chunk)] { self->part(choice, part); });
        };
      }
      const auto on_finished = [self, choice](EngineThread::Result result) {
        self->exchange_->post(
            [self, choice, result = std::move(result)] { self->finished(choice, result); });
      };
      requests_.push_back(engine_.submit(std::move(choices[i]), on_finished));
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

void AnswerJob::part(int choice, const AnswerPart& part) {
  if (!is_over_) writer_->part(choice, part);
}

void AnswerJob::finished(int choice, const EngineThread::Result& result) {
  if (is_over_) return;
  if (const auto* error = std::get_if<std::exception_ptr>(&result)) return fail(*error);
  writer_->finished(choice, std::get<Generation>(result));
  if (++n_finished_ < requests_.size()) return;
  is_over_ = true;
  writer_->all_finished();
}

void AnswerJob::fail(const std::exception_ptr& error) {
  cancel();
  writer_->failed(answer_error(error));
}

void AnswerJob::cancel() {
  is_over_ = true;
  for (const RequestId id : requests_) engine_.cancel(id);
}

}  // namespace forerun
