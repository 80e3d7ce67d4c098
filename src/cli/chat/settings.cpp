#include "cli/chat/settings.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.h"

namespace forerun {
namespace {

constexpr std::string_view kSeed = "seed";
constexpr std::string_view kRandom = "random";
// Each is the flag --NAME, but for n.
constexpr std::array<std::string_view, 7> kSettings = {"temp",           "top-k", "top-p", "min-p",
                                                       "repeat-penalty", "n",     kSeed};

// The command line's parser for flags that it may change.
struct Parser {
  explicit Parser(GenerationFlags& flags) { add_generation_options(app, flags); }

  static std::string flag(std::string_view name) {
    return name == "n" ? "--max-tokens" : fmt::format("--{}", name);
  }

  CLI::App app;
};

void check_name(const std::string& name) {
  if (std::find(kSettings.begin(), kSettings.end(), name) != kSettings.end()) return;
  fail(ErrorCode::kInvalidArgument, "there is no setting {}; there are {}", name,
       fmt::join(kSettings, ", "));
}

}  // namespace

GenerationFlags changed_setting(const GenerationFlags& flags, const std::string& name,
                                const std::string& value) {
  check_name(name);
  GenerationFlags changed = flags;
  if (name == kSeed && value == kRandom) {
    changed.seed = -1;
    return changed;
  }
  Parser parser(changed);
  try {
    std::vector<std::string> arguments{Parser::flag(name) + "=" + value};
    parser.app.parse(arguments);
  } catch (const CLI::ParseError& error) {
    fail(ErrorCode::kInvalidArgument, "/set {}: {}", name, error.what());
  }
  return changed;
}

std::string settings_text(const GenerationFlags& flags, const std::string& name) {
  if (!name.empty()) check_name(name);
  GenerationFlags current = flags;
  const Parser parser(current);
  std::string text;
  for (const std::string_view setting : kSettings) {
    if (!name.empty() && name != setting) continue;
    const CLI::Option* option = parser.app.get_option(Parser::flag(setting));
    const std::string value = setting != kSeed ? option->get_default_str()
                              : flags.seed < 0 ? std::string(kRandom)
                                               : fmt::format("{}", flags.seed);
    text += fmt::format("  {:<15} {:<10} {}\n", setting, value, option->get_description());
  }
  return text;
}

}  // namespace forerun
