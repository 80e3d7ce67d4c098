#include "cli/chat/commands.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "cli/chat/settings.h"
#include "core/error.h"
#include "core/grouped.h"

namespace forerun {
namespace {

using Run = void (*)(ChatSession&, const std::string& argument);

constexpr std::string_view kNoText = "\"\"";

struct Command {
  std::string_view name;
  std::string_view argument;  // in brackets: may be left out; empty: it takes none
  std::string_view help;      // empty: another name of the one before
  Run run;

  bool takes_argument() const { return !argument.empty(); }
  bool needs_argument() const { return takes_argument() && !argument.starts_with('['); }
};

void say(std::string_view line) {
  fmt::print(stderr, "[{}]\n", line);
}

// There is no shell that would do it.
std::filesystem::path with_home(const std::string& path) {
  const char* home = std::getenv("HOME");
  return path.starts_with("~/") && home != nullptr ? home + path.substr(1) : path;
}

void help(ChatSession&, const std::string&) {
  fmt::print(stderr, "{}", chat_help());
}

void reset(ChatSession& session, const std::string&) {
  session.start(Conversation(session.conversation().system()));
}

void regenerate(ChatSession& session, const std::string&) {
  if (session.flags().options.sampling.temperature == 0) {
    say("the temperature is 0, and the answer therefore the same: '/set temp 0.8' changes that");
  }
  session.answer_again();
}

void system(ChatSession& session, const std::string& text) {
  if (!text.empty()) return session.set_system(text == kNoText ? "" : text);
  const std::string& current = session.conversation().system();
  say(current.empty() ? "no system message" : current);
}

void set(ChatSession& session, const std::string& text) {
  const size_t space = text.find_first_of(" \t");
  const std::string name = text.substr(0, space);
  if (space != std::string::npos) {
    return session.set_flags(
        changed_setting(session.flags(), name, text.substr(text.find_first_not_of(" \t", space))));
  }
  fmt::print(stderr, "{}", settings_text(session.flags(), name));
}

void save(ChatSession& session, const std::string& file) {
  const std::filesystem::path path = with_home(file);
  session.conversation().save(path);
  say(fmt::format("saved {} to {}", counted(session.conversation().n_turns(), "turn"), path.string()));
}

void load(ChatSession& session, const std::string& file) {
  session.start(Conversation::load(with_home(file)));
  say(fmt::format("loaded {}", counted(session.conversation().n_turns(), "turn")));
}

void statistics(ChatSession& session, const std::string& argument) {
  if (argument.empty()) {
    const bool is_on = session.shows_statistics;
    return say(fmt::format("{} | '/stats {}' {} the line after each answer", session.statistics(),
                           is_on ? "off" : "on", is_on ? "leaves out" : "shows"));
  }
  if (argument != "on" && argument != "off") {
    fail(ErrorCode::kInvalidArgument, "/stats takes on or off, not '{}'", argument);
  }
  session.shows_statistics = argument == "on";
}

void leave(ChatSession& session, const std::string&) {
  session.is_over = true;
}

constexpr std::array kCommands = {
    Command{"reset", "", "forget the conversation", reset},
    Command{"regen", "", "answer the last message anew, with a random seed", regenerate},
    Command{"system", "[TEXT]", "set the system message from now on (\"\": none), or show it", system},
    Command{"set", "[NAME [VALUE]]", "set a sampling option, or show them", set},
    Command{"save", "FILE", "keep the conversation in a file", save},
    Command{"load", "FILE", "go on with the conversation in a file", load},
    Command{"stats", "[on|off]", "statistics so far; on, off: the line after each answer", statistics},
    Command{"help", "", "show this", help},
    Command{"exit", "", "leave (or /quit, or Ctrl-D)", leave},
    Command{"quit", "", "", leave},
};

constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kMarks = {{
    {"\\", "at the end of a line: the message goes on in the next"},
    {"\"\"\"", "before and after a message of several lines; a pasted text is one"},
    {"//TEXT", "the message /TEXT"},
    {"Ctrl-C", "stop the answer; at the prompt, give the message up"},
}};

}  // namespace

void run_chat_command(ChatSession& session, const std::string& text) {
  constexpr std::string_view kSpaces = " \t\n";
  const size_t name_end = std::min(text.find_first_of(kSpaces), text.size());
  const std::string name = text.substr(0, name_end);
  const size_t begin = std::min(text.find_first_not_of(kSpaces, name_end), text.size());
  const std::string argument = text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);

  const auto* command =
      std::find_if(kCommands.begin(), kCommands.end(), [&](const Command& c) { return c.name == name; });
  if (command == kCommands.end()) {
    fail(ErrorCode::kInvalidArgument, "no command /{}; /help shows all", name);
  }
  if (!command->takes_argument() && !argument.empty()) {
    fail(ErrorCode::kInvalidArgument, "/{} stands alone: nothing may follow it", name);
  }
  if (command->needs_argument() && argument.empty()) {
    fail(ErrorCode::kInvalidArgument, "/{} needs more: /{} {}", name, name, command->argument);
  }
  command->run(session, argument);
}

std::string chat_help() {
  std::string text;
  const auto add = [&](const std::string& what, std::string_view help) {
    text += fmt::format("  {:<21} {}\n", what, help);
  };
  for (const Command& command : kCommands) {
    if (command.help.empty()) continue;
    add(fmt::format("/{}{}{}", command.name, command.takes_argument() ? " " : "", command.argument),
        command.help);
  }
  for (const auto& [mark, help] : kMarks) add(std::string(mark), help);
  return text;
}

}  // namespace forerun
