// forerun chat: a conversation.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/generation_options.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/model_options.h"
#include "cli/output.h"
#include "cli/speculation_options.h"
#include "core/error.h"

namespace forerun {
namespace {

struct ChatOptions {
  ModelOptions model;
  GenerationFlags generation;
  SpeculationFlags speculation;
  std::string system;
};

constexpr const char* kHelp =
    "  /reset   forget the conversation\n"
    "  /stats   switch the line of statistics on or off\n"
    "  /help    show this\n"
    "  /exit    leave (or /quit, or Ctrl-D)\n"
    "  Ctrl-C   stop the answer\n";

class Conversation {
 public:
  Conversation(const ChatOptions& options, Engine& engine)
      : engine_(engine),
        options_(generation_options(options.generation, engine.n_vocab())),
        system_(options.system) {
    reset();
  }

  void reset() {
    messages_.clear();
    if (!system_.empty()) messages_.push_back({.role = "system", .content = system_});
  }

  // Prints the answer as it is made. On an Error the conversation is as before.
  Generation answer(const std::string& text) {
    messages_.push_back({.role = "user", .content = text});
    try {
      Generation generation = engine_.generate({.prompt = engine_.chat_prompt(messages_),
                                                .options = options_,
                                                .on_text = print_text,
                                                .is_cancelled = InterruptGuard::take});
      messages_.push_back({.role = "assistant", .content = generation.text});
      return generation;
    } catch (...) {
      messages_.pop_back();
      throw;
    }
  }

 private:
  Engine& engine_;
  GenerationOptions options_;
  std::string system_;
  std::vector<ChatMessage> messages_;
};

void chat(const ChatOptions& options) {
  options.speculation.warn_of_unused();
  Engine engine(engine_options(options.model, options.speculation.options()));
  if (!engine.has_chat_template()) {
    fail(ErrorCode::kUnsupported,
         "this model has no chat template; use 'forerun run' to continue a text");
  }
  Conversation conversation(options, engine);
  const InterruptGuard interrupts;
  LineEditor editor("> ");
  bool statistics = true;
  if (::isatty(STDIN_FILENO) != 0)
    std::fprintf(stderr, "%s: /help for help\n", options.model.model.c_str());
  while (const auto line = editor.read()) {
    if (line->empty()) continue;
    if (*line == "/exit" || *line == "/quit") return;
    if (*line == "/reset") {
      conversation.reset();
    } else if (*line == "/stats") {
      statistics = !statistics;
    } else if (*line == "/help") {
      std::fputs(kHelp, stderr);
    } else if (line->front() == '/' && line->find(' ') == std::string::npos) {
      std::fprintf(stderr, "no command %s; /help shows all\n", line->c_str());
    } else {
      try {
        const Generation generation = conversation.answer(*line);
        std::printf("\n");
        std::fflush(stdout);
        if (statistics) std::fprintf(stderr, "[%s]\n", statistics_line(generation, engine).c_str());
      } catch (const Error& error) {
        // One bad turn (a text too long for the context) does not end the conversation.
        std::fprintf(stderr, "forerun: %s\n", error.what());
      }
    }
  }
  std::printf("\n");
}

}  // namespace

void add_chat_command(CLI::App& app) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App* command = app.add_subcommand("chat", "Have a conversation");
  command->add_option("--system", options->system, "A system message before the conversation");
  add_model_options(*command, options->model);
  add_context_options(*command, options->model);
  add_generation_options(*command, options->generation);
  add_speculation_options(*command, options->speculation);
  command->footer(std::string("While it runs:\n") + kHelp);
  command->callback([options] { chat(*options); });
}

}  // namespace forerun
