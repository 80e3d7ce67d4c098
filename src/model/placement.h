// Where the layers of a model are computed: on one Device, or spread over several.
//
// Our own graphs compute what devices of this machine hold, part by part (model_part.h), as far as they
// serve the model. Layers on RPC servers, and weights that the CPU's memory does not hold, are for
// libllama (llama/llama_model.h).
#pragma once

#include <forerun/placement_options.h>

#include <memory>
#include <string>
#include <vector>

#include "gguf/gguf_file.h"
#include "model/config.h"
#include "model/device.h"
#include "model/kv_type.h"
#include "model/llama/rpc_servers.h"

namespace forerun {

// What texts will take, which decides how many layers fit.
struct TextNeeds {
  int n_context = 0;  // tokens of one; 0: usual_context()
  int n_parallel = 1;
  int n_cells = 0;  // of all; 0: n_parallel * n_context
  int max_rows = 512;
};

// Tokens of a context if nobody says otherwise.
int usual_context(const ModelConfig& config);

struct Placement {
  struct Part {
    NamedDevice device;
    int n_layers = 0;  // the head counts as one more behind the last layer
  };
  std::vector<Part> parts;  // in the order of layers; empty: everything is on the one Device
  int n_on_cpu = 0;         // layers before the first part's
  bool cpu_experts = false;
  // Weights of the CPU are read in place from the mapped file, since memory does not hold them.
  bool from_file = false;
  // As libllama has layers, since ours would exceed memory or are on other machines.
  bool by_libllama = false;
  // The device that was wanted has no layer.
  bool leaves_device = false;
  std::shared_ptr<const RpcServers> servers;  // nullptr: none takes part

  bool is_spread() const { return !parts.empty(); }
  // Whether layers that look at the cells of others are with them.
  bool suits(const ModelConfig& config) const { return !is_spread() || !config.must_stay_together(); }
  bool needs_libllama() const { return by_libllama || servers != nullptr || from_file; }
  // Whether the CPU computes the MLPs of a layer that is another device's, where graphs are our own.
  bool keeps_on_cpu(const ModelConfig& config, int layer) const {
    return cpu_experts && config.has_experts(layer) && !config.has_parallel_blocks;
  }
  // "layers 0-9 on cpu, 10-31 and the head on cuda:0"; "": all on the one Device.
  std::string where() const;
};

// Throws Error{kInvalidArgument} where options make no sense, whatever the model and the machine.
void check_placement(const PlacementOptions& options);

// Weights, of experts, that `cpu_experts` keeps with the CPU, by a part of their name.
std::span<const char* const> expert_names();

// Connects to the servers and looks how much memory is free; loads nothing. Throws Error.
Placement place_model(const GgufFile& file, const Device& device, const PlacementOptions& options,
                      const TextNeeds& needs = {});

}  // namespace forerun
