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
HttpResponse error_response(int status, const std::string& message, const std::string& type,
                            const nlohmann::ordered_json& more);

}  // namespace forerun
