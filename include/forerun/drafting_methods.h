// The drafting methods there are, and their options: what SpeculationOptions can be set to.
//
//   for (const forerun::DraftingMethod& method : forerun::drafting_methods()) {
//     std::cout << method.name << ": " << method.summary << "\n";
//     for (const auto& option : method.options) std::cout << "  " << option.name << "\n";
//   }
//
// The tables are made once and never change. Thread-safe.
#pragma once

#include <forerun/export.h>

#include <string>
#include <string_view>
#include <vector>

namespace forerun {

// Where a method's drafts come from.
enum class DraftsWith {
  kTexts,
  kLayers,  // of the model that verifies
  kModels,  // others, or whatever pays
};

enum class OptionType {
  kInteger,
  kNumber,
  kSwitch,  // "true" or "false"
  kText,
};

struct DraftingOption {
  std::string name;  // "pld-ngram", as in SpeculationOptions::options
  std::string help;  // one line
  OptionType type = OptionType::kText;
  std::string usual;  // the value that it has where none is given
  // What it may be: of kInteger and kNumber.
  double min = 0;
  double max = 0;
  std::vector<std::string> choices = {};  // of kText; empty: any text
};

struct DraftingMethod {
  std::string name;     // as in SpeculationOptions::method
  std::string summary;  // one line
  DraftsWith drafts_with = DraftsWith::kTexts;
  std::vector<DraftingOption> options = {};  // its own; their names begin with its name
};

// In the order in which a user should read them.
FORERUN_API const std::vector<DraftingMethod>& drafting_methods();

// Throws Error{kInvalidArgument} for a name that is not there, naming those that are.
FORERUN_API const DraftingMethod& drafting_method(std::string_view name);

// Of all methods that draft with layers or models: when a draft stops.
FORERUN_API const std::vector<DraftingOption>& shared_drafting_options();

}  // namespace forerun
