// Values of chat templates as Python has them: how they are written, and what its filters make of texts.
// Texts are sequences of characters, not of bytes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "jinja/value.h"

namespace forerun {

// As str() and repr() write it. What is undefined is empty, or "Undefined" inside of something.
std::string python_text(const jinja::value& value);
std::string python_repr(const jinja::value& value);

// As json.dumps() writes it. Throws std::runtime_error for what JSON cannot hold.
struct JsonStyle {
  bool is_ascii = false;
  std::optional<std::string> indent = {};  // of one level
  std::string item_separator = ", ";
  std::string key_separator = ": ";
  bool sorts_keys = false;
};
std::string python_json(const jinja::value& value, const JsonStyle& style);

// The characters of a text.
std::vector<std::string_view> characters(std::string_view text);
// text[first:last:step]; nullopt: not given.
std::string sliced(std::string_view text, std::optional<int64_t> first, std::optional<int64_t> last,
                   int64_t step);

// Without the characters of `set` at its ends, or white space if there is none.
std::string stripped(std::string_view text, std::optional<std::string_view> set, bool left, bool right);
// At white space, as split() without a separator does.
std::vector<std::string> words(std::string_view text);

}  // namespace forerun
