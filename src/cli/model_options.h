// Options that every command which runs a model has.
#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "engine/loaded_model.h"
#include "engine/model_names.h"
#include "model/executor.h"

namespace forerun {

struct ModelOptions {
  std::string model{kDefaultModel};
  DeviceOptions device;
  int n_context = 0;  // 0: default_context()
  std::string kv_type = "f16";
};

// -m, --device, -t, --no-pin.
void add_model_options(CLI::App& command, ModelOptions& options);
// -c, --kv-type.
void add_context_options(CLI::App& command, ModelOptions& options);

// The context a model gets when nobody asks for one: what it was trained for, up to a
// bound that fits small machines.
int default_context(const ModelConfig& config);

// Loads with a progress line on standard error if it takes longer than a second.
LoadedModel load(const ModelOptions& options);
// Throws Error if there is no such type.
KvType kv_type(const ModelOptions& options);
ExecutorOptions executor_options(const ModelOptions& options, const ModelConfig& config);

}  // namespace forerun
