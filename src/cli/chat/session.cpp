#include "cli/chat/session.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "cli/output.h"
#include "cli/terminal/interrupt.h"
#include "core/error.h"
#include "core/grouped.h"
#include "sampling/options.h"

namespace forerun {

ChatSession::ChatSession(Engine& engine, const GenerationFlags& flags, std::string system)
    : engine_(engine), conversation_(std::move(system)) {
  set_flags(flags);
}

void ChatSession::start(Conversation conversation) {
  conversation_ = std::move(conversation);
  totals_ = {};
}

void ChatSession::set_flags(const GenerationFlags& flags) {
  GenerationOptions options = generation_options(flags);
  validate(options, engine_.model().n_vocab);
  options_ = std::move(options);
  flags_ = flags;
}

int ChatSession::n_tokens(const std::vector<ChatMessage>& messages) const {
  return static_cast<int>(engine_.tokenizer().chat_prompt(messages).size());
}

void ChatSession::answer(const std::string& text) {
  answer(conversation_, text, options_);
}

void ChatSession::answer_again() {
  Conversation before = conversation_;
  const auto latest = before.take_latest();
  if (!latest) fail(ErrorCode::kInvalidArgument, "there is no answer yet: write a message first");
  GenerationOptions options = options_;
  options.sampling.seed = std::nullopt;  // with the same one it would be the same text
  answer(std::move(before), latest->user, options);
}

void ChatSession::answer(Conversation before, const std::string& text,
                         const GenerationOptions& options) {
  const int n_forgotten =
      before.make_room(text, engine_.n_context(), options.max_tokens,
                       [&](const std::vector<ChatMessage>& messages) { return n_tokens(messages); });
  if (n_forgotten > 0) {
    fmt::print(stderr, "[forgot the {} to make room: the context holds {}; /reset forgets all{}]\n",
               n_forgotten == 1 ? "oldest turn" : fmt::format("{} oldest turns", n_forgotten),
               counted(engine_.n_context(), "token"),
               engine_.n_context() < engine_.model().n_context_trained ? ", a larger one is -c" : "");
  }
  Generation generation =
      engine_.generate({.prompt = engine_.tokenizer().chat_prompt(before.messages(text)),
                        .options = options,
                        .on_chunk = print_chunk,
                        .is_cancelled = InterruptGuard::take});
  print_text("\n");
  if (shows_statistics) fmt::print(stderr, "[{}]\n", statistics_line(generation, engine_));
  totals_.timings.n_predicted += generation.timings.n_predicted;
  totals_.timings.predicted_ms += generation.timings.predicted_ms;
  totals_.drafts.add(generation.speculation.total());
  before.add({.user = text, .assistant = std::move(generation.text)});
  conversation_ = std::move(before);
}

std::string ChatSession::statistics() const {
  const int n_turns = conversation_.n_turns();
  // Some templates refuse a conversation in which nobody has said anything.
  const int n_used = n_turns == 0 ? 0 : n_tokens(conversation_.messages());
  const Timings& t = totals_.timings;
  const DraftCounts& drafts = totals_.drafts;
  const auto share = [](int64_t part, int64_t all) {
    return all > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(all) : 0.0;
  };
  return fmt::format(
      "turns: {} | context: {} of {} tokens | answers: {}, {:.1f} per second | drafted: {}, {:.0f} % of "
      "them "
      "right, {:.0f} % of the answers",
      n_turns, n_used, engine_.n_context(), counted(t.n_predicted, "token"), t.predicted_per_second(),
      counted(drafts.n_drafted, "token"), share(drafts.n_accepted, drafts.n_drafted),
      share(drafts.n_accepted, t.n_predicted));
}

}  // namespace forerun
