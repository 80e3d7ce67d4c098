// Errors as clients of OpenAI's and llama.cpp's servers expect them.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "serve/http/http_message.h"

namespace forerun {

// What kind of error a status is: "invalid_request_error".
std::string_view error_type(int status);

// {"error": {"code": ..., "message": ..., "type": ...}}
HttpResponse error_response(int status, const std::string& message);
// The same around an error that says more.
HttpResponse wrapped_error(int status, const nlohmann::ordered_json& error);

}  // namespace forerun
