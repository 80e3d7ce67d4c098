// Numbers on the command line.
#pragma once

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <string>

namespace forerun {

// As CLI::Range, but "nan" is no number.
inline CLI::Validator number_range(double min, double max) {
  return CLI::Validator(
      [min, max](std::string& text) -> std::string {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && value >= min && value <= max) return "";
        return fmt::format("{} is not a number from {} to {}", text, min, max);
      },
      fmt::format("FLOAT in [{} - {}]", min, max));
}

}  // namespace forerun
