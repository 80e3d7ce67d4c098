#include "cli/speculation_options.h"

#include <fmt/format.h>
#include <forerun/drafting_methods.h>

#include <algorithm>

#include "api/checked_options.h"
#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/usage.h"

namespace forerun {
namespace {

void add_flag(CLI::App& command, SpeculationFlags& flags, const DraftingOption& option) {
  auto& [name, given] = flags.method_options.emplace_back(option.name, "");
  CLI::Option* flag = command.add_option("--" + name, given, option.help)
                          ->default_str(option.usual)
                          ->group(kDraftingKnobs);
  switch (option.type) {
    case OptionType::kInteger:
      flag->check(CLI::Range(static_cast<int>(option.min), static_cast<int>(option.max)));
      break;
    case OptionType::kNumber: flag->check(number_range(option.min, option.max)); break;
    case OptionType::kSwitch: flag->check(CLI::IsMember({"true", "false"})); break;
    case OptionType::kText:
      if (!option.choices.empty()) flag->check(CLI::IsMember(option.choices));
      break;
  }
}

bool has(const std::vector<DraftingOption>& options, std::string_view name) {
  return std::ranges::any_of(options, [&](const DraftingOption& option) { return option.name == name; });
}

// `auto` may use those of any method.
bool is_used(std::string_view option, const DraftingMethod& chosen) {
  if (chosen.name == "auto") return true;
  if (has(shared_drafting_options(), option)) return chosen.drafts_with != DraftsWith::kTexts;
  return has(chosen.options, option);
}

}  // namespace

void SpeculationFlags::warn_of_unused() const {
  const DraftingMethod& method = drafting_method(chosen.method);
  const SpeculationOptions given = options();
  for (const auto& [name, value] : given.options) {
    if (is_used(name, method)) continue;
    print_warning(fmt::format("--{} is not used by --spec {}", name, method.name));
  }
  if (method.name == "rest" && given.datastores.empty() && given.live_datastore.empty()) {
    print_warning("--spec rest drafts from a datastore alone: without --datastore there are no drafts");
  }
  const auto rule = given.options.find("lookahead");
  if (given.options.contains("lookahead-classifier") &&
      (rule == given.options.end() || rule->second != "disco")) {
    print_warning("--lookahead-classifier is for --lookahead disco alone");
  }
}

void SpeculationFlags::check() const {
  if (parse_speculation(options()).needs_answers) fail_without_answer();
}

SpeculationOptions SpeculationFlags::options() const {
  SpeculationOptions options = chosen;
  options.datastores.assign(datastores.begin(), datastores.end());
  options.live_datastore = live_datastore;
  for (const auto& [name, value] : method_options) {
    if (!value.empty()) options.options.emplace(name, value);
  }
  return options;
}

void add_speculation_options(CLI::App& command, SpeculationFlags& flags) {
  const char* group = "Drafting (how fast the answer comes, not what it says)";
  std::string methods = "Where drafts come from:";
  std::vector<std::string> names;
  for (const DraftingMethod& method : drafting_methods()) {
    methods += fmt::format("\n{:<8} {}", method.name, method.summary);
    names.emplace_back(method.name);
  }
  command.add_option("--spec", flags.chosen.method, methods)
      ->check(CLI::IsMember(names))
      ->capture_default_str()
      ->group(group);
  command
      .add_option(
          "--tree", flags.chosen.tree,
          "Drafted tokens verified at once: auto (by measured cost), roofline, own (as published), "
          "or a number")
      ->group(group);
  command
      .add_option("--accept", flags.chosen.accept,
                  "match: the very same text. target, leviathan, rejection: the papers' rules, which "
                  "keep its distribution")
      ->capture_default_str()
      ->group(group);
  command
      .add_option("--datastore", flags.datastores, "Folder of texts to draft from; may be given again")
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->group(group);
  command
      .add_option("--live-datastore", flags.live_datastore,
                  "Folder to draft from and to add answers to (without it nothing is kept)")
      ->group(group);
  command.set_help_all_flag("--help-all", "Show the options of drafting methods too");
  for (const DraftingOption& option : shared_drafting_options()) add_flag(command, flags, option);
  for (const DraftingMethod& method : drafting_methods()) {
    for (const DraftingOption& option : method.options) add_flag(command, flags, option);
  }
}

}  // namespace forerun
