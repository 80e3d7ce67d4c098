// The command line as people see it: how help looks, and what is said of a mistake in it.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

namespace forerun {

// Options of this group are shown by --help-all alone.
inline constexpr const char* kDraftingKnobs = "Drafting methods";

std::shared_ptr<CLI::FormatterBase> help_formatter();

// Everything about drafting that a command's help has, --help-all's included.
std::string drafting_help(const CLI::App& command);

// What is wrong with a command line, in one line that says what is near.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error);

}  // namespace forerun
