// Options that every command which runs a model has.
#pragma once

#include <forerun/engine.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/hub_model.h"
#include "engine/model_names.h"
#include "model/device.h"
#include "model/kv_cache.h"

namespace forerun {

struct ModelOptions {
  std::string model{kDefaultModel};
  HubChoice hub;  // instead of it
  DeviceOptions device;
  int n_context = 0;  // 0: the engine's default
  std::string kv_type = "f16";
  std::optional<bool> exact;
  PlacementOptions placement;

  // As the user named it.
  const std::string& name() const { return hub.model.empty() ? model : hub.model; }
};

// -m, -hf, --device, -t, --no-pin.
void add_model_options(CLI::App& command, ModelOptions& options);
// -c, --kv-type, --exact.
void add_context_options(CLI::App& command, ModelOptions& options);

// --gpu-layers, --split, --cpu-experts, --rpc.
void add_placement_options(CLI::App& command, PlacementOptions& options);

// What an engine with these options is made from; progress goes to standard error when it
// takes longer than a second, and so do warnings. A model of a hub is pulled first. Throws Error.
EngineOptions engine_options(const ModelOptions& options, const SpeculationOptions& speculation);

}  // namespace forerun
