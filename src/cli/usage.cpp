#include "cli/usage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string_view>
#include <vector>

namespace forerun {
namespace {

constexpr size_t kColumnWidth = 34;

class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kColumnWidth); }

  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    shows_all_ = mode == CLI::AppFormatMode::All;
    return Formatter::make_help(app, std::move(name), mode);
  }

  std::string make_group(std::string group, bool is_positional,
                         std::vector<const CLI::Option*> options) const override {
    if (group != kDraftingKnobs || shows_all_) {
      return Formatter::make_group(std::move(group), is_positional, std::move(options));
    }
    return fmt::format("\n{}: --help-all shows their {} options\n", group, options.size());
  }

  // What kind of value, and which one it has: limits and choices belong into descriptions.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_type_size() == 0) return "";
    const std::string type = option->get_type_name();
    const std::string& usual = option->get_default_str();
    return fmt::format(" {}{}{}", type.substr(0, type.find(':')), usual.empty() ? "" : "=" + usual,
                       option->get_expected_max() > 1 ? " ..." : "");
  }

  // Without CLI11's word on what a flag that switches something off does.
  std::string make_option_name(const CLI::Option* option, bool is_positional) const override {
    const std::string name = Formatter::make_option_name(option, is_positional);
    return name.substr(0, name.find('{'));
  }

  void show_all() { shows_all_ = true; }

 private:
  mutable bool shows_all_ = false;
};

// How many characters must be added, removed, changed or swapped with the next one.
int distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<int>> d(a.size() + 1, std::vector<int>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = static_cast<int>(i);
  std::iota(d[0].begin(), d[0].end(), 0);
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const int changed = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, changed});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

// Of some names the one that was probably meant: it begins alike, or differs in few letters.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& names) {
  constexpr size_t kLeastBeginning = 3;
  std::optional<std::string> best;
  int least = std::max(1, static_cast<int>(word.size()) / 3) + 1;
  for (const std::string& name : names) {
    const bool begins_alike =
        word.size() >= kLeastBeginning &&
        (name.starts_with(word) || (name.size() >= kLeastBeginning && word.starts_with(name)));
    const int n = begins_alike ? 1 : distance(word, name);
    if (n >= least) continue;
    least = n;
    best = name;
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& names,
                       std::string_view prefix) {
  const auto name = nearest(word, names);
  return name ? fmt::format("; did you mean {}{}?", prefix, *name) : "";
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    names.insert(names.end(), option->get_lnames().begin(), option->get_lnames().end());
  }
  return names;
}

bool is_flag(const std::string& word) {
  return word.size() > 1 && word.front() == '-';
}

// "--temprature=1" as "temprature".
std::string_view name_of_flag(std::string_view flag) {
  flag = flag.substr(0, flag.find('='));
  return flag.substr(std::min(flag.find_first_not_of('-'), flag.size()));
}

std::string unknown_flags(const CLI::App& app, const std::string& command,
                          const std::vector<std::string>& flags) {
  if (flags.size() > 1) return fmt::format("'{}' has no options {}", command, fmt::join(flags, ", "));
  return fmt::format("'{}' has no option {}{}", command, flags.front(),
                     suggestion(name_of_flag(flags.front()), option_names(app), "--"));
}

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<HelpFormatter>();
}

std::string drafting_help(const CLI::App& command) {
  HelpFormatter formatter;
  formatter.show_all();
  std::string text;
  for (const std::string& group : command.get_groups()) {
    if (!group.starts_with("Drafting")) continue;
    text += formatter.make_group(group, false, command.get_options([&](const CLI::Option* option) {
      return option->get_group() == group && option->nonpositional();
    }));
  }
  return text;
}

std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* at = &app;
  std::string command = app.get_name();
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().back();
    command += " " + at->get_name();
  }
  const std::string advice = fmt::format(" ('{} --help' shows what there is)", command);
  std::vector<std::string> flags, words;
  for (const std::string& word : at->remaining()) (is_flag(word) ? flags : words).push_back(word);

  const bool needs_command = at->get_require_subcommand_min() > 0;
  const bool has_extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  if (needs_command && !words.empty()) {
    return fmt::format("there is no command '{} {}'{}{}", command, words.front(),
                       suggestion(words.front(), command_names(*at), command + " "), advice);
  }
  if (!flags.empty() && (needs_command || has_extras)) {
    return unknown_flags(*at, command, flags) + advice;
  }
  if (needs_command) return fmt::format("'{}' needs a command{}", command, advice);
  if (!words.empty() && has_extras) {
    const bool has_prompt = at->get_option_no_throw("--prompt") != nullptr;
    return fmt::format("'{}' does not take '{}'{}{}", command, words.front(),
                       has_prompt ? ": put a prompt of several words in quotes" : "", advice);
  }
  return error.what() + advice;
}

}  // namespace forerun
