// forerun chat: a conversation.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>

#include "cli/chat/commands.h"
#include "cli/chat/session.h"
#include "cli/commands.h"
#include "cli/generation_options.h"
#include "cli/model_options.h"
#include "cli/speculation_options.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/line_editor.h"
#include "core/error.h"

namespace forerun {
namespace {

struct ChatOptions {
  ModelOptions model;
  GenerationFlags generation;
  SpeculationFlags speculation;
  std::string system;
};

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t\n") == std::string::npos;
}

void chat(const ChatOptions& options) {
  generation_options(options.generation);  // before anything is loaded
  options.speculation.check();
  options.speculation.warn_of_unused();
  Engine engine(engine_options(options.model, options.speculation.options()));
  if (!engine.tokenizer().has_chat_template()) {
    fail(ErrorCode::kUnsupported,
         "this model has no chat template; use 'forerun run' to continue a text");
  }
  ChatSession session(engine, options.generation, options.system);
  const InterruptGuard interrupts;
  LineEditor editor;
  if (::isatty(STDIN_FILENO) != 0) {
    std::fprintf(stderr, "%s: /help for help\n", options.model.name().c_str());
  }
  while (const auto input = editor.read()) {
    try {
      if (input->is_command) {
        run_chat_command(session, input->text);
      } else if (!is_blank(input->text)) {
        session.answer(input->text);
      }
    } catch (const Error& error) {
      // One bad turn (a text too long for the context) does not end the conversation.
      std::fprintf(stderr, "forerun: %s\n", error.what());
    }
    if (session.is_over) return;
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
  add_placement_options(*command, options->model.placement);
  add_generation_options(*command, options->generation);
  add_speculation_options(*command, options->speculation);
  command->footer(std::string("While it runs:\n") + chat_help());
  command->callback([options] { chat(*options); });
}

}  // namespace forerun
