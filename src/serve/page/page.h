// The page that a browser gets, and the files it asks for.
#pragma once

#include <optional>
#include <string_view>

#include "serve/http/http_message.h"

namespace forerun {

// What is at a path of the page: "/", "/page/app.js". Empty: nothing of it.
std::optional<HttpResponse> show_page(std::string_view path);

}  // namespace forerun
