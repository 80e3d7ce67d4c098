// Models of a hub, for commands that take one by name or path as well.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "engine/hub_names.h"

namespace forerun {

// A model of a hub instead of one that -m names.
struct HubChoice {
  std::string model;  // "org/repo[:quant]"; empty: none
  std::string file;   // of that repository; empty: the one that the name means
};

// --hf-repo (-hf) and --hf-file (-hff). `named`: the option in whose place they stand.
void add_hub_options(CLI::App& command, HubChoice& choice, CLI::Option* named);

// `named`, or the file of the hub's model, which is pulled if it is not here. Throws Error, Interrupted.
std::string chosen_model(const std::string& named, const HubChoice& choice);

// Throws Error where it is none.
HubName hub_name_of(const std::string& text);

// Asks the hub, and shows how far it is where standard error is a terminal. Returns the model's file.
// Throws Error, Interrupted.
std::filesystem::path pull_showing_progress(const HubName& name, const std::string& file);

}  // namespace forerun
