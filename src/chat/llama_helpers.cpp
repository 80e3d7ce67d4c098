// What llama.cpp's chat code needs of its own helpers, and no more: those drag the rest of its programs
// in.
#include <llama.h>

#include "common.h"
#include "log.h"

std::string string_join(const std::vector<std::string>& values, const std::string& separator) {
  std::string result;
  for (const std::string& value : values) {
    if (&value != &values.front()) result += separator;
    result += value;
  }
  return result;
}

std::vector<std::string> string_split(const std::string& text, const std::string& delimiter) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = text.find(delimiter); end != std::string::npos; end = text.find(delimiter, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + delimiter.size();
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string string_repeat(const std::string& text, size_t n) {
  std::string result;
  for (size_t i = 0; i < n; ++i) result += text;
  return result;
}

void string_replace_all(std::string& text, const std::string& search, const std::string& replacement) {
  if (search.empty()) return;
  for (size_t at = text.find(search); at != std::string::npos;
       at = text.find(search, at + replacement.size())) {
    text.replace(at, search.size(), replacement);
  }
}

// Templates come with the texts of their tokens, so that there is no vocabulary to ask.
std::vector<llama_token> common_tokenize(const llama_vocab*, const std::string&, bool, bool) {
  return {};
}

std::string common_token_to_piece(const llama_vocab*, llama_token, bool) {
  return "";
}

// It has nothing to say that an exception does not.
int common_log_get_verbosity_thold() {
  return -1;
}

bool common_log_get_jsonl() {
  return false;
}

common_log* common_log_main() {
  return nullptr;
}

void common_log_add(common_log*, ggml_log_level, const char*, ...) {}
void common_log_add_json(common_log*, const char*, const common_json&) {}
