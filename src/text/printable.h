// Text from elsewhere (a model, a file's name, what a user typed) for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace forerun {

// The text with nothing in it that a terminal would act upon: control characters but newlines
// and tabs, and those that turn the direction of text around, become \x1b or \u202e, and bytes
// that are no UTF-8 \xff.
std::string printable(std::string_view text);

}  // namespace forerun
