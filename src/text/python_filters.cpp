#include "text/python_filters.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "text/python_values.h"

namespace forerun {
namespace {

using jinja::func_args;
using jinja::is_val;
using jinja::mk_val;
using Value = jinja::value;

Value text_value(std::string text) {
  return mk_val<jinja::value_string>(std::move(text));
}

Value list_of(const std::vector<std::string>& texts) {
  auto list = mk_val<jinja::value_array>();
  for (const std::string& text : texts) list->push_back(text_value(text));
  return list;
}

// The argument at a place or of a name; nullopt where there is none or it is None.
std::optional<Value> argument(const func_args& arguments, const char* name, size_t place) {
  Value given = arguments.get_kwarg_or_pos(name, place);
  if (given->is_undefined() || given->is_none()) return std::nullopt;
  return given;
}

std::optional<std::string> text_argument(const func_args& arguments, const char* name, size_t place) {
  const auto given = argument(arguments, name, place);
  return given ? std::optional(python_text(*given)) : std::nullopt;
}

Value to_json(const Value& input, const func_args& arguments) {
  JsonStyle style;
  if (const auto ascii = argument(arguments, "ensure_ascii", 0)) style.is_ascii = (*ascii)->as_bool();
  if (const auto indent = argument(arguments, "indent", 1)) {
    constexpr int64_t kMaxIndent = 64;
    style.indent =
        is_val<jinja::value_string>(*indent)
            ? (*indent)->as_string().str()
            : std::string(static_cast<size_t>(std::clamp<int64_t>((*indent)->as_int(), 0, kMaxIndent)),
                          ' ');
    style.item_separator = ",";
  }
  if (const auto separators = argument(arguments, "separators", 2)) {
    const auto& pair = (*separators)->as_array();
    if (pair.size() != 2) throw std::runtime_error("tojson: separators are two texts");
    style.item_separator = python_text(pair[0]);
    style.key_separator = python_text(pair[1]);
  }
  if (const auto sort = argument(arguments, "sort_keys", 3)) style.sorts_keys = (*sort)->as_bool();
  return text_value(python_json(input, style));
}

Value default_of(const Value& input, const func_args& arguments) {
  const auto is_strict = argument(arguments, "boolean", 1);
  const bool is_missing =
      input->is_undefined() || (is_strict && (*is_strict)->as_bool() && !input->as_bool());
  if (!is_missing) return input;
  const Value given = arguments.get_kwarg_or_pos("default_value", 0);
  return given->is_undefined() ? text_value("") : given;
}

Value to_text(const Value& input, const func_args&) {
  return text_value(python_text(input));
}

Value trimmed(const Value& input, const func_args& arguments) {
  return text_value(stripped(python_text(input), text_argument(arguments, "chars", 0), true, true));
}

Value length(const Value& input, const func_args&) {
  if (!is_val<jinja::value_string>(input)) throw std::runtime_error(input->type() + " has no length");
  return mk_val<jinja::value_int>(static_cast<int64_t>(characters(input->as_string().str()).size()));
}

Value attribute_of(const Value& item, const std::optional<Value>& attribute) {
  if (!attribute) return item;
  Value missing = mk_val<jinja::value_undefined>();
  return is_val<jinja::value_object>(item) ? item->at(*attribute, missing) : missing;
}

Value joined(const Value& input, const func_args& arguments) {
  const std::string separator = text_argument(arguments, "d", 0).value_or("");
  const auto attribute = argument(arguments, "attribute", 1);
  std::string result;
  bool is_first = true;
  for (const Value& item : input->as_array()) {
    if (!std::exchange(is_first, false)) result += separator;
    result += python_text(attribute_of(item, attribute));
  }
  return text_value(result);
}

Value character_list(const Value& input, const func_args&) {
  const std::string text = input->as_string().str();
  auto list = mk_val<jinja::value_array>();
  for (const std::string_view character : characters(text)) {
    list->push_back(text_value(std::string(character)));
  }
  return list;
}

Value key_list(const Value& input, const func_args&) {
  auto list = mk_val<jinja::value_array>();
  for (const auto& entry : input->as_ordered_object()) list->push_back(entry.first);
  return list;
}

template <bool kFirst>
Value end_character(const Value& input, const func_args&) {
  const std::string text = input->as_string().str();
  const auto all = characters(text);
  if (all.empty()) return mk_val<jinja::value_undefined>();
  return text_value(std::string(kFirst ? all.front() : all.back()));
}

// How sorting compares: texts without regard to case, unless it is asked for.
struct SortKey {
  explicit SortKey(const Value& given, bool minds_case) : item(given) {
    if (!is_val<jinja::value_string>(given)) return;
    text = given->as_string().str();
    if (minds_case) return;
    for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c;
  }
  bool operator<(const SortKey& other) const {
    const bool is_text = is_val<jinja::value_string>(item);
    if (is_text != is_val<jinja::value_string>(other.item) ||
        (!is_text && !(item->is_numeric() && other.item->is_numeric()))) {
      throw std::runtime_error(item->type() + " and " + other.item->type() + " have no order");
    }
    return is_text ? text < other.text : item->as_float() < other.item->as_float();
  }
  Value item;
  std::string text;
};

bool flag(const func_args& arguments, const char* name, size_t place) {
  const auto given = argument(arguments, name, place);
  return given && (*given)->as_bool();
}

// Pairs of what to sort by and what is sorted.
std::vector<Value> in_order(std::vector<std::pair<SortKey, Value>> items, bool is_reverse) {
  std::ranges::stable_sort(items, [&](const auto& a, const auto& b) {
    return is_reverse ? b.first < a.first : a.first < b.first;
  });
  std::vector<Value> result;
  for (auto& [key, item] : items) result.push_back(std::move(item));
  return result;
}

Value sorted(const Value& input, const func_args& arguments) {
  const auto attribute = argument(arguments, "attribute", 2);
  std::vector<std::pair<SortKey, Value>> items;
  for (const Value& item : input->as_array()) {
    items.emplace_back(SortKey(attribute_of(item, attribute), flag(arguments, "case_sensitive", 1)),
                       item);
  }
  return mk_val<jinja::value_array>(in_order(std::move(items), flag(arguments, "reverse", 0)));
}

Value sorted_items(const Value& input, const func_args& arguments) {
  const bool is_by_value = text_argument(arguments, "by", 1) == "value";
  std::vector<std::pair<SortKey, Value>> items;
  for (const auto& entry : input->as_ordered_object()) {
    items.emplace_back(
        SortKey(is_by_value ? entry.second : entry.first, flag(arguments, "case_sensitive", 0)),
        mk_val<jinja::value_tuple>(entry));
  }
  return mk_val<jinja::value_array>(in_order(std::move(items), flag(arguments, "reverse", 2)));
}

Value without_repeats(const Value& input, const func_args& arguments) {
  const auto attribute = argument(arguments, "attribute", 1);
  std::set<std::string> seen;
  auto list = mk_val<jinja::value_array>();
  for (const Value& item : input->as_array()) {
    const SortKey key(attribute_of(item, attribute), flag(arguments, "case_sensitive", 0));
    if (seen.insert(key.text.empty() ? python_repr(key.item) : key.text).second) list->push_back(item);
  }
  return list;
}

Value refuse_none(const Value&, const func_args&) {
  throw std::runtime_error("None cannot be filtered so");
}

Value replaced(const Value& input, const func_args& arguments) {
  const std::string text = python_text(input);
  const std::string old_text = text_argument(arguments, "s", 0).value_or("None");
  const std::string new_text = text_argument(arguments, "new", 1).value_or("None");
  const auto most = argument(arguments, "count", 2);
  int64_t n_left = most ? (*most)->as_int() : -1;
  std::string result;
  size_t from = 0;
  if (old_text.empty()) {  // between all characters
    for (const std::string_view character : characters(text)) {
      if (n_left-- != 0)
        result += new_text;
      else
        ++n_left;
      result += character;
    }
    return text_value(n_left != 0 ? result + new_text : result);
  }
  for (size_t at = text.find(old_text); at != std::string::npos && n_left != 0;
       at = text.find(old_text, from)) {
    result += text.substr(from, at - from) + new_text;
    from = at + old_text.size();
    --n_left;
  }
  return text_value(result + text.substr(from));
}

template <bool kLeft, bool kRight>
Value strip(const Value& input, const func_args& arguments) {
  return text_value(
      stripped(input->as_string().str(), text_argument(arguments, "chars", 0), kLeft, kRight));
}

// Only without a separator; with one, the engine's does.
Value split_at_spaces(const Value& input, const func_args&) {
  return list_of(words(input->as_string().str()));
}

Value split_lines(const Value& input, const func_args&) {
  std::vector<std::string> lines(1);
  const std::string text = input->as_string().str();
  for (const char c : text) {
    if (c == '\n')
      lines.emplace_back();
    else
      lines.back() += c;
  }
  if (lines.back().empty()) lines.pop_back();
  return list_of(lines);
}

Value join_method(const Value& input, const func_args& arguments) {
  std::string result;
  bool is_first = true;
  for (const Value& item : arguments.get_pos(0)->as_array()) {
    if (!is_val<jinja::value_string>(item))
      throw std::runtime_error("join() takes texts, not " + item->type());
    if (!std::exchange(is_first, false)) result += input->as_string().str();
    result += item->as_string().str();
  }
  return text_value(result);
}

using Table = std::map<std::string, PythonFunction>;

}  // namespace

PythonFunction python_filter(const std::string& name, const Value& input) {
  static const Table kAny = {{"tojson", to_json}, {"default", default_of}, {"d", default_of},
                             {"string", to_text}, {"trim", trimmed},       {"replace", replaced},
                             {"safe", to_text}};
  static const Table kText = {{"length", length},
                              {"count", length},
                              {"list", character_list},
                              {"first", end_character<true>},
                              {"last", end_character<false>}};
  static const Table kArray = {{"join", joined}, {"sort", sorted}, {"unique", without_repeats}};
  static const Table kObject = {{"list", key_list}, {"dictsort", sorted_items}};
  static const Table kNone = {{"length", length},    {"count", length},     {"items", refuse_none},
                              {"list", refuse_none}, {"join", refuse_none}, {"unique", refuse_none}};
  const auto in = [&](const Table& table) {
    const auto found = table.find(name);
    return found == table.end() ? nullptr : found->second;
  };
  if (const PythonFunction function = in(kAny)) return function;
  if (is_val<jinja::value_string>(input)) return in(kText);
  if (is_val<jinja::value_array>(input)) return in(kArray);
  if (is_val<jinja::value_object>(input)) return in(kObject);
  return input->is_none() ? in(kNone) : nullptr;
}

PythonFunction python_method(const std::string& name, const Value& input, const func_args& arguments) {
  static const Table kText = {{"strip", strip<true, true>},   {"lstrip", strip<true, false>},
                              {"rstrip", strip<false, true>}, {"replace", replaced},
                              {"splitlines", split_lines},    {"join", join_method}};
  if (!is_val<jinja::value_string>(input)) return nullptr;
  if (name == "split" && arguments.count() == 0) return split_at_spaces;
  const auto found = kText.find(name);
  return found == kText.end() ? nullptr : found->second;
}

}  // namespace forerun
