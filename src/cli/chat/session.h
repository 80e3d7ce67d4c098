// A conversation with a model: asks it, prints what it says, and counts.
#pragma once

#include <forerun/engine.h>

#include <string>

#include "cli/chat/conversation.h"
#include "cli/generation_options.h"

namespace forerun {

class ChatSession {
 public:
  // The engine must outlive it. Throws Error if the flags make no sense.
  ChatSession(Engine& engine, const GenerationFlags& flags, std::string system);

  // Prints the answer as it is made. On an Error the conversation is as before.
  void answer(const std::string& text);
  // Answers the latest message anew, with another seed.
  void answer_again();

  const Conversation& conversation() const { return conversation_; }
  void set_system(std::string text) { conversation_.set_system(std::move(text)); }
  // What comes next continues this one.
  void start(Conversation conversation);

  const GenerationFlags& flags() const { return flags_; }
  // Throws Error if they make no sense; those from before hold then.
  void set_flags(const GenerationFlags& flags);

  // Of the conversation so far, in one line.
  std::string statistics() const;

  bool shows_statistics = true;  // after each answer
  bool is_over = false;

 private:
  void answer(Conversation before, const std::string& text, const GenerationOptions& options);
  int n_tokens(const std::vector<ChatMessage>& messages) const;

  struct Totals {
    Timings timings;
    DraftCounts drafts;
  };

  Engine& engine_;
  GenerationFlags flags_;
  GenerationOptions options_;  // what the flags say
  Conversation conversation_;
  Totals totals_;
};

}  // namespace forerun
