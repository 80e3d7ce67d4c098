// forerun help: the help of a command, or all about drafting.
#include <cstdio>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/usage.h"
#include "core/error.h"

namespace forerun {
namespace {

constexpr const char* kDrafting = "drafting";

void help(const CLI::App& app, const std::string& topic) {
  if (topic.empty()) {
    std::fputs(app.help().c_str(), stdout);
    return;
  }
  for (const CLI::App* command : app.get_subcommands({})) {
    if (command->get_name() == topic) {
      std::fputs(command->help(app.get_name()).c_str(), stdout);
      return;
    }
    if (command->get_name() == "run" && topic == kDrafting) {
      std::fputs(drafting_help(*command).c_str(), stdout);
      return;
    }
  }
  fail(ErrorCode::kInvalidArgument,
       "there is no help for '{}': name a command ('forerun --help' shows them), or {}", topic,
       kDrafting);
}

}  // namespace

void add_help_command(CLI::App& app) {
  auto topic = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("help", "Show the help of a command, or of drafting");
  command->add_option("topic", *topic, "A command, or 'drafting': every option of every method");
  command->callback([&app, topic] { help(app, *topic); });
}

}  // namespace forerun
