// A conversation: its system message and its turns, which of them fit, and its file.
#pragma once

#include <forerun/chat_message.h>

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace forerun {

struct Turn {
  std::string user;
  std::string assistant;
};

class Conversation {
 public:
  // How many tokens the model reads for these messages.
  using CountTokens = std::function<int(const std::vector<ChatMessage>&)>;

  explicit Conversation(std::string system) : system_(std::move(system)) {}

  const std::string& system() const { return system_; }  // empty: none
  void set_system(std::string text) { system_ = std::move(text); }

  int n_turns() const { return static_cast<int>(turns_.size()); }
  void add(Turn turn) { turns_.push_back(std::move(turn)); }
  // The latest, which is no longer part of it; nullopt: there is none.
  std::optional<Turn> take_latest();
  // All turns; the system message stays.
  void reset() { turns_.clear(); }

  // What the model reads, without and with a message that it is to answer.
  std::vector<ChatMessage> messages() const { return messages_after(0); }
  std::vector<ChatMessage> messages(const std::string& user) const { return messages_after(0, user); }

  // Forgets the oldest turns unless `user` fits, and a quarter of the context, or `max_tokens`
  // (-1: no limit) where they are fewer, is left for the answer. What remains takes half of the
  // context then: without a beginning that it knows the model reads all afresh, and that is
  // not to happen in every turn. Returns how many were forgotten. Throws Error{kContextFull}
  // if the message does not fit even alone, and nothing is forgotten.
  int make_room(const std::string& user, int n_context, int max_tokens, const CountTokens& count);

  // JSON: {"forerun_chat": 1, "system": "...", "messages": [{"role": "user", "content": "..."},
  // {"role": "assistant", "content": "..."}, ...]}. Both throw Error.
  void save(const std::filesystem::path& path) const;
  static Conversation load(const std::filesystem::path& path);

 private:
  std::vector<ChatMessage> messages_after(int n_forgotten) const;
  std::vector<ChatMessage> messages_after(int n_forgotten, const std::string& user) const;

  std::string system_;
  std::vector<Turn> turns_;
};

}  // namespace forerun
