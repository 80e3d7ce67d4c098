#include "serve/answer/answer_job.h"

#include <utility>

namespace forerun {

void AnswerJob::start(const std::shared_ptr<Exchange>& exchange, EngineThread& engine,
                      std::vector<Request> choices, std::unique_ptr<AnswerWriter> writer) {
  const std::shared_ptr<AnswerJob> job(
      new AnswerJob(exchange, engine, std::move(choices), std::move(writer)));
  exchange->on_gone([job] { job->cancel(); });
  job->submit_more();
}

void AnswerJob::submit_more() {
  // As many that wait as run, so that none of its turns is missed.
  const size_t most = 2 * static_cast<size_t>(engine_.n_parallel());
  try {
    while (!is_over_ && requests_.size() < choices_.size() && requests_.size() < n_finished_ + most) {
      submit(static_cast<int>(requests_.size()));
    }
  } catch (...) {
    fail(std::current_exception());
  }
}

void AnswerJob::submit(int choice) {
  const auto self = shared_from_this();
  Request& request = choices_[static_cast<size_t>(choice)];
  if (writer_->streams()) {
    request.on_chunk = [self, choice](const Chunk& chunk) {
      self->exchange_->post([self, choice, part = AnswerPart(chunk)] { self->part(choice, part); });
    };
  }
  if (writer_->wants_progress()) {
    request.on_progress = [self, choice](const PromptProgress& progress) {
      self->exchange_->post([self, choice, progress] {
        if (!self->is_over_) self->writer_->progress(choice, progress);
      });
    };
  }
  const auto on_finished = [self, choice](EngineThread::Result result) {
    self->exchange_->post(
        [self, choice, result = std::move(result)] { self->finished(choice, result); });
  };
  requests_.push_back(engine_.submit(std::move(request), on_finished));
}

void AnswerJob::part(int choice, const AnswerPart& part) {
  if (!is_over_) writer_->part(choice, part);
}

void AnswerJob::finished(int choice, const EngineThread::Result& result) {
  if (is_over_) return;
  if (const auto* error = std::get_if<std::exception_ptr>(&result)) return fail(*error);
  writer_->finished(choice, std::get<Generation>(result));
  if (++n_finished_ < choices_.size()) return submit_more();
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
