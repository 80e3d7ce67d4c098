// Options about drafting, shared by the commands that generate text.
#pragma once

#include <forerun/engine.h>

#include <CLI/CLI.hpp>
#include <list>
#include <string>
#include <utility>
#include <vector>

namespace forerun {

struct SpeculationFlags {
  SpeculationOptions chosen;
  std::vector<std::string> datastores;
  std::string live_datastore;
  // Of the methods, by name; empty: not given. A list: the flags keep pointers.
  std::list<std::pair<std::string, std::string>> method_options;

  // What the flags say.
  SpeculationOptions options() const;
  // Throws Error if requests cannot be answered so, as far as that needs no model.
  void check() const;
  // On standard error, a line for each flag that the chosen method has no use for.
  void warn_of_unused() const;
};

// --spec, --accept, --tree, --datastore, --live-datastore, and the options of all methods.
void add_speculation_options(CLI::App& command, SpeculationFlags& flags);

}  // namespace forerun
