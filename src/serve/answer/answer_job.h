// The answer to one HTTP request: one or more choices that an engine makes and a writer sends.
//
// A client who leaves cancels the choices of this answer, and of no other. Of many choices no more are
// asked for at once than keep the engine busy, so that other clients have their turns between them.
#pragma once

#include <memory>
#include <vector>

#include "serve/answer/answer_writer.h"
#include "serve/engine_thread.h"
#include "serve/http/exchange.h"

namespace forerun {

class AnswerJob : public std::enable_shared_from_this<AnswerJob> {
 public:
  // On the exchange's strand. The engine outlives it.
  static void start(const std::shared_ptr<Exchange>& exchange, EngineThread& engine,
                    std::vector<Request> choices, std::unique_ptr<AnswerWriter> writer);

 private:
  AnswerJob(const std::shared_ptr<Exchange>& exchange, EngineThread& engine,
            std::vector<Request> choices, std::unique_ptr<AnswerWriter> writer)
      : exchange_(exchange), engine_(engine), choices_(std::move(choices)), writer_(std::move(writer)) {}
  void submit_more();
  void submit(int choice);
  void part(int choice, const AnswerPart& part);
  void finished(int choice, const EngineThread::Result& result);
  void fail(const std::exception_ptr& error);
  void cancel();

  std::shared_ptr<Exchange> exchange_;
  EngineThread& engine_;
  std::vector<Request> choices_;  // moved from once they are asked for
  std::unique_ptr<AnswerWriter> writer_;
  std::vector<RequestId> requests_;  // of the choices that are asked for
  size_t n_finished_ = 0;
  bool is_over_ = false;  // the client has all, or is gone
};

}  // namespace forerun
