#include "cli/chat/conversation.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/replace_file.h"
#include "layers/layer_file.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

constexpr JsonFileKind kKind{
    .version_field = "forerun_chat", .version = 1, .what = "conversation", .command = "/save FILE"};

}  // namespace

std::optional<Turn> Conversation::take_latest() {
  if (turns_.empty()) return std::nullopt;
  Turn turn = std::move(turns_.back());
  turns_.pop_back();
  return turn;
}

std::vector<ChatMessage> Conversation::messages_after(int n_forgotten) const {
  std::vector<ChatMessage> messages;
  if (!system_.empty()) messages.push_back({.role = "system", .content = system_});
  for (auto turn = turns_.begin() + n_forgotten; turn != turns_.end(); ++turn) {
    messages.push_back({.role = "user", .content = turn->user});
    messages.push_back({.role = "assistant", .content = turn->assistant});
  }
  return messages;
}

std::vector<ChatMessage> Conversation::messages_after(int n_forgotten, const std::string& user) const {
  std::vector<ChatMessage> messages = messages_after(n_forgotten);
  messages.push_back({.role = "user", .content = user});
  return messages;
}

int Conversation::make_room(const std::string& user, int n_context, int max_tokens,
                            const CountTokens& count) {
  const auto tokens = [&](int n_forgotten) { return count(messages_after(n_forgotten, user)); };
  const int quarter = n_context / 4;
  const int most = n_context - (max_tokens < 0 ? quarter : std::min(max_tokens, quarter));
  if (tokens(0) <= most) return 0;
  const int alone = tokens(n_turns());
  if (alone >= n_context) {
    fail(ErrorCode::kContextFull,
         "the message{} alone takes {} tokens and the context holds {}: shorten it, or start with a "
         "larger context (-c {})",
         system_.empty() ? "" : " with the system message", alone, n_context, alone + 256);
  }
  const int target = alone <= n_context / 2 ? n_context / 2 : most;
  int n_forgotten = 0;
  while (n_forgotten < n_turns() && tokens(n_forgotten) > target) ++n_forgotten;
  turns_.erase(turns_.begin(), turns_.begin() + n_forgotten);
  return n_forgotten;
}

void Conversation::save(const std::filesystem::path& path) const {
  Json list = Json::array();
  for (const Turn& turn : turns_) {
    list.push_back({{"role", "user"}, {"content", turn.user}});
    list.push_back({{"role", "assistant"}, {"content", turn.assistant}});
  }
  const Json json{{kKind.version_field, kKind.version}, {"system", system_}, {"messages", list}};
  replace_file(path, json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Conversation Conversation::load(const std::filesystem::path& path) {
  Conversation conversation("");
  load_json(kKind, path, [&](const Json& json) {
    conversation.set_system(json.at("system").get<std::string>());
    const Json& list = json.at("messages");
    expect(list.is_array() && list.size() % 2 == 0);
    for (size_t i = 0; i < list.size(); i += 2) {
      expect(list[i].at("role") == "user" && list[i + 1].at("role") == "assistant");
      conversation.add({.user = list[i].at("content").get<std::string>(),
                        .assistant = list[i + 1].at("content").get<std::string>()});
    }
  });
  return conversation;
}

}  // namespace forerun
