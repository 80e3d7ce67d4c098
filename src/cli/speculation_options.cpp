#include "cli/speculation_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/number_range.h"
#include "cli/output.h"
#include "cli/usage.h"
#include "draft/methods.h"

namespace forerun {
namespace {

// Makes a flag of every option it visits.
class FlagMaker final : public OptionVisitor {
 public:
  FlagMaker(CLI::App& command, SpeculationFlags& flags) : command_(command), flags_(flags) {}

  void visit(const OptionText& text, int& value, OptionRange<int> range) override {
    add(text, fmt::format("{}", value))->check(CLI::Range(range.min, range.max));
  }
  void visit(const OptionText& text, double& value, OptionRange<double> range) override {
    add(text, fmt::format("{}", value))->check(number_range(range.min, range.max));
  }
  void visit(const OptionText& text, bool& value) override {
    add(text, value ? "true" : "false")->check(CLI::IsMember({"true", "false"}));
  }
  void visit(const OptionText& text, std::string& value,
             std::span<const std::string_view> choices) override {
    CLI::Option* option = add(text, value);
    if (choices.empty()) return;
    option->check(CLI::IsMember(std::vector<std::string>(choices.begin(), choices.end())));
  }

 private:
  CLI::Option* add(const OptionText& text, const std::string& value) {
    auto& [name, given] = flags_.method_options.emplace_back(text.name, "");
    return command_.add_option("--" + name, given, std::string(text.help))
        ->default_str(value)
        ->group(kDraftingKnobs);
  }

  CLI::App& command_;
  SpeculationFlags& flags_;
};

// `auto` may use those of any method.
bool is_used(std::string_view option, const MethodInfo& chosen) {
  if (chosen.name == "auto") return true;
  if (option.starts_with("lookahead")) return chosen.drafts_with != DraftsWith::kTexts;
  return option.starts_with(fmt::format("{}-", chosen.name));
}

}  // namespace

void SpeculationFlags::warn_of_unused() const {
  const MethodInfo& method = find_method(chosen.method);
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
  for (const MethodInfo& method : draft_methods()) {
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
      ->check(CLI::IsMember({"match", "target", "leviathan", "rejection"}))
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
  FlagMaker maker(command, flags);
  MethodOptions defaults;
  defaults.describe(maker);
}

}  // namespace forerun
