#include "serve/answer/answer_error.h"

#include <forerun/error.h>

#include "serve/http/error_response.h"
#include "serve/protocol/context_error.h"

namespace forerun {
namespace {

int status_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kInvalidArgument:
    case ErrorCode::kContextFull: return 400;
    case ErrorCode::kNotFound: return 404;
    case ErrorCode::kUnsupported: return 501;
    case ErrorCode::kOutOfMemory: return 503;
    case ErrorCode::kInvalidFile:
    case ErrorCode::kIo: return 500;
  }
  return 500;
}

}  // namespace

nlohmann::ordered_json AnswerError::json() const {
  nlohmann::ordered_json error = {{"code", status}, {"message", message}, {"type", type}};
  error.update(more);
  return error;
}

HttpResponse AnswerError::response() const {
  return wrapped_error(status, json());
}

AnswerError answer_error(const std::exception_ptr& error) {
  const auto with_status = [](int status, const char* message) {
    return AnswerError{.status = status, .type = std::string(error_type(status)), .message = message};
  };
  try {
    std::rethrow_exception(error);
  } catch (const ContextError& full) {
    AnswerError result = with_status(400, full.what());
    result.type = "exceed_context_size_error";
    result.more = {{"n_prompt_tokens", full.n_prompt()}, {"n_ctx", full.n_context()}};
    return result;
  } catch (const Error& known) {
    return with_status(status_of(known.code()), known.what());
  } catch (const std::exception& unknown) {
    return with_status(500, unknown.what());
  } catch (...) {
    return with_status(500, "an unknown error");
  }
}

}  // namespace forerun
