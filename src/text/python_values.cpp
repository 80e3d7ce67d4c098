#include "text/python_values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "fmt/format.h"

namespace forerun {
namespace {

using jinja::is_val;

// What str.isspace() says yes to.
constexpr std::string_view kSpaces[] = {
    "\t",     "\n",     "\v",     "\f",     "\r",     "\x1c",   "\x1d",   "\x1e",   "\x1f",   " ",
    "\u0085", "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004", "\u2005", "\u2006",
    "\u2007", "\u2008", "\u2009", "\u200a", "\u2028", "\u2029", "\u202f", "\u205f", "\u3000"};

bool is_space(std::string_view character) {
  return std::ranges::find(kSpaces, character) != std::end(kSpaces);
}

uint32_t code_point(std::string_view character) {
  const auto byte = [&](size_t i) {
    return static_cast<uint32_t>(static_cast<unsigned char>(character[i]));
  };
  switch (character.size()) {
    case 1: return byte(0);
    case 2: return (byte(0) & 0x1f) << 6 | (byte(1) & 0x3f);
    case 3: return (byte(0) & 0x0f) << 12 | (byte(1) & 0x3f) << 6 | (byte(2) & 0x3f);
    default:
      return (byte(0) & 0x07) << 18 | (byte(1) & 0x3f) << 12 | (byte(2) & 0x3f) << 6 | (byte(3) & 0x3f);
  }
}

// The fewest digits that mean the same number, with an exponent where Python has one.
std::string number_text(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number < 0 ? "-inf" : "inf";
  const double size = std::abs(number);
  const bool has_exponent = size != 0 && (size < 1e-4 || size >= 1e16);
  char digits[400];
  const auto end =
      std::to_chars(std::begin(digits), std::end(digits), number,
                    has_exponent ? std::chars_format::scientific : std::chars_format::fixed);
  std::string text(digits, end.ptr);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

std::string text_repr(std::string_view text) {
  const bool has_single = text.find('\'') != std::string_view::npos;
  const char quote = has_single && text.find('"') == std::string_view::npos ? '"' : '\'';
  std::string result(1, quote);
  for (const std::string_view character : characters(text)) {
    const char c = character.size() == 1 ? character[0] : '\0';
    if (c == quote || c == '\\') {
      result += '\\';
      result += c;
    } else if (character == "\n" || character == "\r" || character == "\t") {
      result += c == '\n' ? "\\n" : c == '\r' ? "\\r" : "\\t";
    } else if (character.size() == 1 && (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)) {
      result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else if (is_space(character) && character != " ") {
      const uint32_t code = code_point(character);
      result += code < 0x100 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
    } else {
      result += character;
    }
  }
  return result + quote;
}

std::string json_text(std::string_view text, bool is_ascii) {
  std::string result = "\"";
  for (const std::string_view character : characters(text)) {
    if (character.size() > 1) {
      const uint32_t code = code_point(character);
      if (!is_ascii) {
        result += character;
      } else if (code < 0x10000) {
        result += fmt::format("\\u{:04x}", code);
      } else {
        result += fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + ((code - 0x10000) >> 10),
                              0xdc00 + ((code - 0x10000) & 0x3ff));
      }
      continue;
    }
    const char c = character[0];
    switch (c) {
      case '"': result += "\\\""; break;
      case '\\': result += "\\\\"; break;
      case '\b': result += "\\b"; break;
      case '\f': result += "\\f"; break;
      case '\n': result += "\\n"; break;
      case '\r': result += "\\r"; break;
      case '\t': result += "\\t"; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || (c == 0x7f && is_ascii)) {
          result += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
          result += c;
        }
    }
  }
  return result + '"';
}

class JsonWriter {
 public:
  explicit JsonWriter(const JsonStyle& style) : style_(style) {}

  std::string write(const jinja::value& value, size_t level) {
    if (level > kMaxLevels) throw std::runtime_error("a value is nested too deeply for JSON");
    if (value->is_none()) return "null";
    if (is_val<jinja::value_bool>(value)) return value->as_bool() ? "true" : "false";
    if (is_val<jinja::value_int>(value)) return std::to_string(value->as_int());
    if (is_val<jinja::value_float>(value)) {
      const double number = value->as_float();
      if (std::isnan(number)) return "NaN";
      if (std::isinf(number)) return number < 0 ? "-Infinity" : "Infinity";
      return number_text(number);
    }
    if (is_val<jinja::value_string>(value)) return json_text(value->as_string().str(), style_.is_ascii);
    if (is_val<jinja::value_array>(value)) {
      std::vector<std::string> items;
      for (const auto& item : value->as_array()) items.push_back(write(item, level + 1));
      return enclosed('[', items, ']', level);
    }
    if (is_val<jinja::value_object>(value)) return write_object(value, level);
    throw std::runtime_error(value->is_undefined() ? "what is undefined cannot be written as JSON"
                                                   : "a function cannot be written as JSON");
  }

 private:
  static constexpr size_t kMaxLevels = 200;

  std::string write_object(const jinja::value& value, size_t level) {
    std::vector<std::pair<std::string, jinja::value>> entries;
    for (const auto& [key, item] : value->as_ordered_object()) entries.emplace_back(key_text(key), item);
    if (style_.sorts_keys) {
      std::ranges::stable_sort(
          entries, {}, [](const auto& entry) -> const auto& { return entry.first; });
    }
    std::vector<std::string> items;
    for (const auto& [key, item] : entries) {
      items.push_back(json_text(key, style_.is_ascii) + style_.key_separator + write(item, level + 1));
    }
    return enclosed('{', items, '}', level);
  }

  static std::string key_text(const jinja::value& key) {
    if (key->is_none()) return "null";
    if (is_val<jinja::value_bool>(key)) return key->as_bool() ? "true" : "false";
    return python_text(key);
  }

  std::string enclosed(char open, const std::vector<std::string>& items, char close,
                       size_t level) const {
    const auto line = [&](size_t n) {
      std::string text = "\n";
      for (size_t i = 0; i < n; ++i) text += *style_.indent;
      return text;
    };
    std::string result(1, open);
    for (size_t i = 0; i < items.size(); ++i) {
      if (i > 0) result += style_.item_separator;
      if (style_.indent) result += line(level + 1);
      result += items[i];
    }
    if (style_.indent && !items.empty()) result += line(level);
    return result + close;
  }

  const JsonStyle& style_;
};

}  // namespace

std::string python_text(const jinja::value& value) {
  if (value->is_undefined()) return "";
  return is_val<jinja::value_string>(value) ? value->as_string().str() : python_repr(value);
}

std::string python_repr(const jinja::value& value) {
  if (value->is_none()) return "None";
  if (value->is_undefined()) return "Undefined";
  if (is_val<jinja::value_bool>(value)) return value->as_bool() ? "True" : "False";
  if (is_val<jinja::value_int>(value)) return std::to_string(value->as_int());
  if (is_val<jinja::value_float>(value)) return number_text(value->as_float());
  if (is_val<jinja::value_string>(value)) return text_repr(value->as_string().str());
  std::string result;
  if (is_val<jinja::value_array>(value)) {
    const bool is_tuple = is_val<jinja::value_tuple>(value);
    for (const auto& item : value->as_array()) {
      result += (result.empty() ? "" : ", ") + python_repr(item);
    }
    if (is_tuple && value->as_array().size() == 1) result += ',';
    return is_tuple ? '(' + result + ')' : '[' + result + ']';
  }
  if (is_val<jinja::value_object>(value)) {
    for (const auto& [key, item] : value->as_ordered_object()) {
      result += (result.empty() ? "" : ", ") + python_repr(key) + ": " + python_repr(item);
    }
    return '{' + result + '}';
  }
  throw std::runtime_error("a function has no text");
}

std::string python_json(const jinja::value& value, const JsonStyle& style) {
  return JsonWriter(style).write(value, 0);
}

std::vector<std::string_view> characters(std::string_view text) {
  std::vector<std::string_view> result;
  for (size_t i = 0; i < text.size();) {
    size_t n = 1;
    while (i + n < text.size() && (static_cast<unsigned char>(text[i + n]) & 0xc0) == 0x80 && n < 4) ++n;
    result.push_back(text.substr(i, n));
    i += n;
  }
  return result;
}

std::string sliced(std::string_view text, std::optional<int64_t> first, std::optional<int64_t> last,
                   int64_t step) {
  if (step == 0) throw std::runtime_error("slice step cannot be zero");
  const std::vector<std::string_view> all = characters(text);
  const auto n = static_cast<int64_t>(all.size());
  const int64_t lowest = step > 0 ? 0 : -1;
  const int64_t highest = step > 0 ? n : n - 1;
  const auto place = [&](std::optional<int64_t> given, int64_t otherwise) {
    if (!given) return otherwise;
    return std::clamp(*given < 0 ? std::max(*given, -n - 1) + n : *given, lowest, highest);
  };
  const int64_t end = place(last, step > 0 ? n : -1);
  std::string result;
  for (int64_t i = place(first, step > 0 ? 0 : n - 1); step > 0 ? i < end : i > end; i += step) {
    result += all[static_cast<size_t>(i)];
    if (std::abs(step) > n) break;
  }
  return result;
}

std::string stripped(std::string_view text, std::optional<std::string_view> set, bool left, bool right) {
  const std::vector<std::string_view> all = characters(text);
  const std::vector<std::string_view> wanted = set ? characters(*set) : std::vector<std::string_view>();
  const auto goes = [&](std::string_view character) {
    return set ? std::ranges::find(wanted, character) != wanted.end() : is_space(character);
  };
  size_t first = 0;
  size_t last = all.size();
  while (left && first < last && goes(all[first])) ++first;
  while (right && last > first && goes(all[last - 1])) --last;
  std::string result;
  for (size_t i = first; i < last; ++i) result += all[i];
  return result;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> result;
  bool is_inside = false;
  for (const std::string_view character : characters(text)) {
    if (is_space(character)) {
      is_inside = false;
    } else {
      if (!is_inside) result.emplace_back();
      result.back() += character;
      is_inside = true;
    }
  }
  return result;
}

}  // namespace forerun
