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
#include "core/error.h"
#include "engine/generator.h"

namespace forerun {
namespace {

struct ChatOptions {
  ModelOptions model;
  GenerationFlags generation;
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
  Conversation(const ChatOptions& options, const LoadedModel& loaded)
      : loaded_(loaded),
        options_(generation_options(options.generation, loaded.vocabulary)),
        system_(options.system),
        executor_(loaded.model, executor_options(options.model, loaded.model->config())),
        generator_(executor_, loaded.vocabulary) {
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
      const std::string rendered =
          loaded_.chat_template->render(messages_, /*add_generation_prompt=*/true);
      InterruptGuard::take();  // one that was meant for the line before
      Generation generation =
          generator_.generate(loaded_.vocabulary.tokenize_rendered(rendered), options_,
                              {.on_text = print_text, .is_cancelled = InterruptGuard::take});
      messages_.push_back({.role = "assistant", .content = generation.text});
      return generation;
    } catch (...) {
      messages_.pop_back();
      throw;
    }
  }

 private:
  const LoadedModel& loaded_;
  GenerationOptions options_;
  std::string system_;
  Executor executor_;
  Generator generator_;
  std::vector<ChatMessage> messages_;
};

void chat(const ChatOptions& options) {
  const LoadedModel loaded = load(options.model);
  if (!loaded.chat_template) {
    fail(ErrorCode::kUnsupported,
         "this model has no chat template; use 'forerun run' to continue a text");
  }
  Conversation conversation(options, loaded);
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
        if (statistics) std::fprintf(stderr, "[%s]\n", statistics_line(generation).c_str());
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
  command->footer(std::string("While it runs:\n") + kHelp);
  command->callback([options] { chat(*options); });
}

}  // namespace forerun
