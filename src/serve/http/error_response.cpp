#include "serve/http/error_response.h"

#include <nlohmann/json.hpp>

namespace forerun {

std::string_view error_type(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 500: return "server_error";
    case 501: return "not_supported_error";
    case 503: return "unavailable_error";
    default: return "invalid_request_error";
  }
}

HttpResponse error_response(int status, const std::string& message) {
  return wrapped_error(status, {{"code", status}, {"message", message}, {"type", error_type(status)}});
}

HttpResponse wrapped_error(int status, const nlohmann::ordered_json& error) {
  const nlohmann::ordered_json body = {{"error", error}};
  return {.status = status,
          .body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

}  // namespace forerun
