#include "cli/terminal/message_input.h"

#include <fmt/format.h>

namespace forerun {
namespace {

constexpr std::string_view kQuotes = "\"\"\"";
constexpr std::string_view kContinuation = "\\";

}  // namespace

std::optional<Input> MessageInput::push(std::string_view line) {
  if (is_open()) {
    lines_ += '\n';
  } else if (line.starts_with(kQuotes)) {
    // Pasted lines that begin like a block and do not end like one are just that, lines.
    const std::string_view rest = line.substr(kQuotes.size());
    is_block_ = rest.ends_with(kQuotes) || rest.find('\n') == std::string_view::npos;
    if (is_block_) line = rest;
  }
  const std::string_view mark = is_block_ ? kQuotes : kContinuation;
  const bool has_mark = line.ends_with(mark);
  if (has_mark) line.remove_suffix(mark.size());
  lines_ += line;
  is_continued_ = has_mark && !is_block_;
  if (has_mark != is_block_) return std::nullopt;
  return take();
}

std::optional<Input> MessageInput::finish() {
  if (!is_open()) return std::nullopt;
  return take();
}

Input MessageInput::take() {
  Input input;
  if (is_block_) {
    // The quotes may have lines of their own.
    if (lines_.starts_with('\n')) lines_.erase(0, 1);
    if (lines_.ends_with('\n')) lines_.pop_back();
    input.text = lines_;
    input.source = fmt::format("{0}\n{1}\n{0}", kQuotes, lines_);
  } else {
    while (lines_.ends_with('\n')) lines_.pop_back();
    const bool has_slash = lines_.starts_with('/');
    input.text = lines_.substr(has_slash ? 1 : 0);
    input.is_command = has_slash && !input.text.starts_with('/');
    input.source = lines_;
  }
  *this = {};
  return input;
}

}  // namespace forerun
