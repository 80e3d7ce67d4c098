// For tests: is this markup well-formed, and what is in it?
#pragma once

#include <algorithm>
#include <cctype>
#include <string>
#include <string_view>
#include <vector>

namespace forerun {

inline size_t count_of(std::string_view text, std::string_view what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != text.npos; at = text.find(what, at + what.size())) ++n;
  return n;
}

// Every number of an attribute, such as x="12.5".
inline std::vector<double> attribute_values(const std::string& markup, const std::string& name) {
  const std::string start = " " + name + "=\"";
  std::vector<double> values;
  for (size_t at = markup.find(start); at != markup.npos; at = markup.find(start, at + 1)) {
    values.push_back(std::stod(markup.substr(at + start.size(), 40)));
  }
  return values;
}

// Whether there are numbers that are none, such as x="nan".
inline bool has_bad_number(std::string_view markup) {
  const auto is_letter = [&](size_t i) {
    return i < markup.size() && std::isalpha(static_cast<unsigned char>(markup[i])) != 0;
  };
  for (const std::string_view word : {"nan", "inf"}) {
    for (size_t at = markup.find(word); at != markup.npos; at = markup.find(word, at + 1)) {
      if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
    }
  }
  return false;
}

// Whether every & begins one of the entities that markup_text() writes.
inline bool is_escaped(std::string_view text) {
  for (size_t at = text.find('&'); at != text.npos; at = text.find('&', at + 1)) {
    const std::string_view rest = text.substr(at);
    const auto begins = [&](std::string_view entity) { return rest.starts_with(entity); };
    if (!begins("&amp;") && !begins("&lt;") && !begins("&gt;") && !begins("&quot;") &&
        !begins("&#39;")) {
      return false;
    }
  }
  return true;
}

// Takes ` name="value"` off the front of a tag's inside; false if there is something else.
inline bool take_attribute(std::string_view& inside, std::vector<std::string>& names) {
  const size_t name_at = inside.find_first_not_of(" \n");
  const size_t equals = inside.find("=\"");
  if (name_at == 0 || name_at == inside.npos || equals == inside.npos || equals <= name_at) return false;
  const std::string name(inside.substr(name_at, equals - name_at));
  const size_t end = inside.find('"', equals + 2);
  if (name.find_first_of(" \n\"'<>&") != name.npos || end == inside.npos) return false;
  if (std::find(names.begin(), names.end(), name) != names.end()) return false;
  names.push_back(name);
  const bool is_good = is_escaped(inside.substr(equals, end - equals));
  inside.remove_prefix(end + 1);
  return is_good;
}

// What is wrong with `markup`, or "" if its tags are balanced, its attributes quoted and
// unique, and its text escaped. Knows elements, text and <!DOCTYPE html>, no comments.
inline std::string markup_fault(std::string_view markup) {
  constexpr std::string_view kDoctype = "<!DOCTYPE html>";
  if (markup.starts_with(kDoctype)) markup.remove_prefix(kDoctype.size());
  std::vector<std::string> open;
  while (true) {
    const size_t next = markup.find('<');
    const std::string_view text = markup.substr(0, next);
    if (!is_escaped(text) || text.find('>') != text.npos) return "not escaped: " + std::string(text);
    if (next == markup.npos) return open.empty() ? "" : "not closed: " + open.back();
    const size_t end = markup.find('>', next);
    if (end == markup.npos) return "tag without end";
    std::string_view inside = markup.substr(next + 1, end - next - 1);
    const std::string fault = "bad tag: " + std::string(inside);
    markup.remove_prefix(end + 1);
    const bool closes = inside.starts_with('/'), is_empty = inside.ends_with('/');
    if (closes) inside.remove_prefix(1);
    if (is_empty) inside.remove_suffix(1);
    const std::string name(inside.substr(0, inside.find_first_of(" \n")));
    if (name.empty() || std::isalpha(static_cast<unsigned char>(name[0])) == 0) return fault;
    inside.remove_prefix(name.size());
    std::vector<std::string> names;
    while (inside.find_first_not_of(" \n") != inside.npos) {
      if (closes || !take_attribute(inside, names)) return fault;
    }
    if (!closes && !is_empty) open.push_back(name);
    if (!closes) continue;
    if (open.empty() || open.back() != name) return fault;
    open.pop_back();
  }
}

}  // namespace forerun
