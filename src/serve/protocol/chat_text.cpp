#include "serve/protocol/chat_text.h"

#include "serve/protocol/answer_json.h"

namespace forerun {

std::vector<ChatDelta> ChatText::add(std::string_view more) {
  text_ += more;
  if (parser_ != nullptr) return read(/*is_partial=*/true);
  answer_.content += more;
  if (more.empty()) return {};
  return {{.content = std::string(more), .reasoning = {}, .call = {}}};
}

std::vector<ChatDelta> ChatText::finish(const std::string& text) {
  const std::string_view left = std::string_view(text).substr(text_.size());
  if (parser_ == nullptr) return add(left);
  text_ = text;
  return read(/*is_partial=*/false);
}

std::vector<ChatDelta> ChatText::read(bool is_partial) {
  ChatAnswer now = parser_->parse(text_, is_partial);
  for (size_t i = 0; i < now.tool_calls.size(); ++i) {
    if (!now.tool_calls[i].id.empty()) continue;
    const bool has_one = i < answer_.tool_calls.size();
    now.tool_calls[i].id = has_one ? answer_.tool_calls[i].id : new_id("");
  }
  std::vector<ChatDelta> deltas = chat_deltas(answer_, now);
  answer_ = std::move(now);
  return deltas;
}

}  // namespace forerun
