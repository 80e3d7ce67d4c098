// The page that a browser gets.
#pragma once

#include <string_view>

namespace forerun {

extern const std::string_view kPage;

}  // namespace forerun
