// What went wrong with a request, as a client is told.
#pragma once

#include <exception>
#include <nlohmann/json.hpp>
#include <string>

#include "serve/http/http_message.h"

namespace forerun {

struct AnswerError {
  int status = 500;
  std::string type = {};  // "invalid_request_error"
  std::string message = {};
  nlohmann::ordered_json more = nlohmann::ordered_json::object();  // further fields

  nlohmann::ordered_json json() const;  // {"code": ..., "message": ..., "type": ...}
  HttpResponse response() const;
};

// What an exception says: the client's own fault, or ours.
AnswerError answer_error(const std::exception_ptr& error);

}  // namespace forerun
