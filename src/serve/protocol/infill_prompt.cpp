#include "serve/protocol/infill_prompt.h"

#include <algorithm>
#include <span>

#include "core/error.h"

namespace forerun {
namespace {

// Requests have no names for these.
constexpr const char* kProjectName = "myproject";
constexpr const char* kFileName = "filename";
// Between files, for models that have no mark for that.
constexpr const char* kBetweenFiles = "\n\n--- snippet ---\n\n";

std::string required_text(const Json& request, const std::string& name) {
  const auto text = string_field(request, name);
  if (!text) fail(ErrorCode::kInvalidArgument, "\"{}\" is required: a string", name);
  return *text;
}

void append(std::vector<TokenId>& tokens, std::span<const TokenId> more) {
  tokens.insert(tokens.end(), more.begin(), more.end());
}

// Text that users write has no marks in it.
std::vector<TokenId> text_tokens(const Tokenizer& tokenizer, const std::string& text) {
  return tokenizer.tokenize(text, {.add_special = false, .parse_special = false});
}

// "<mark>name" and the end of the line; nothing without a mark.
std::vector<TokenId> marked_line(const Tokenizer& tokenizer, const std::optional<TokenId>& mark,
                                 const std::string& name) {
  if (!mark) return {};
  std::vector<TokenId> line = {*mark};
  append(line, text_tokens(tokenizer, name + "\n"));
  return line;
}

std::vector<TokenId> file_tokens(const Tokenizer& tokenizer, const InfillFile& file) {
  std::vector<TokenId> tokens = marked_line(tokenizer, tokenizer.infill_tokens().file, file.name);
  if (tokens.empty()) tokens = text_tokens(tokenizer, kBetweenFiles);
  append(tokens, text_tokens(tokenizer, file.text));
  return tokens;
}

// What comes before the first mark, in at most `max_tokens`.
std::vector<TokenId> other_files(const InfillParts& parts, const Tokenizer& tokenizer,
                                 size_t max_tokens) {
  const InfillTokens marks = tokenizer.infill_tokens();
  const auto project = marked_line(tokenizer, marks.project, kProjectName);
  const auto own_file = marked_line(tokenizer, marks.file, kFileName);
  size_t n_tokens = project.size() + own_file.size();
  std::vector<std::vector<TokenId>> fitting;  // the last one first
  for (auto file = parts.files.rbegin(); file != parts.files.rend(); ++file) {
    fitting.push_back(file_tokens(tokenizer, *file));
    n_tokens += fitting.back().size();
    if (n_tokens <= max_tokens) continue;
    fitting.pop_back();
    break;
  }
  if (fitting.empty()) return {};
  std::vector<TokenId> tokens = project;
  for (auto file = fitting.rbegin(); file != fitting.rend(); ++file) append(tokens, *file);
  append(tokens, own_file);
  return tokens;
}

}  // namespace

InfillParts read_infill_parts(const Json& request) {
  InfillParts parts{.before = required_text(request, "input_prefix"),
                    .after = required_text(request, "input_suffix"),
                    .begun = string_field(request, "prompt").value_or(""),
                    .files = {}};
  const Json* files = array_field(request, "input_extra");
  if (files == nullptr) return parts;
  for (const Json& file : *files) {
    const auto text = file.is_object() ? string_field(file, "text") : std::nullopt;
    if (!text) {
      fail(ErrorCode::kInvalidArgument,
           "\"input_extra\" must be an array of objects with \"filename\" and \"text\"");
    }
    parts.files.push_back({.name = string_field(file, "filename").value_or("tmp"), .text = *text});
  }
  return parts;
}

void check_infill(const Tokenizer& tokenizer) {
  const InfillTokens marks = tokenizer.infill_tokens();
  std::string missing;
  const auto look = [&](const std::optional<TokenId>& mark, const char* name) {
    if (!mark) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
  };
  look(marks.prefix, "prefix");
  look(marks.suffix, "suffix");
  look(marks.middle, "middle");
  if (missing.empty()) return;
  fail(ErrorCode::kUnsupported,
       "Infill is not supported by this model: its vocabulary has no token for {} (models for code have "
       "them)",
       missing);
}

std::optional<std::vector<TokenId>> infill_prompt(const InfillParts& parts, const Tokenizer& tokenizer,
                                                  int max_tokens) {
  const InfillTokens marks = tokenizer.infill_tokens();
  const auto before = text_tokens(tokenizer, parts.before);
  const auto after = text_tokens(tokenizer, parts.after);
  const auto begun = text_tokens(tokenizer, parts.begun);
  std::vector<TokenId> prompt;
  if (tokenizer.adds_bos()) prompt.push_back(tokenizer.bos().value());
  const size_t n_needed = prompt.size() + 3 + begun.size();
  if (n_needed > static_cast<size_t>(max_tokens)) return std::nullopt;

  size_t n_left = static_cast<size_t>(max_tokens) - n_needed;
  const size_t n_beside_after = n_left - std::min(n_left, after.size());
  const size_t n_before = std::min(before.size(), std::max(n_left * 3 / 4, n_beside_after));
  const size_t n_after = std::min(after.size(), n_left - n_before);
  n_left -= n_before + n_after;
  append(prompt, other_files(parts, tokenizer, n_left));
  prompt.push_back(marks.prefix.value());
  append(prompt, std::span(before).last(n_before));
  append(prompt, begun);
  prompt.push_back(marks.suffix.value());
  append(prompt, std::span(after).first(n_after));
  prompt.push_back(marks.middle.value());
  return prompt;
}

}  // namespace forerun
