// Where the layers of a model go. By default on one device if they fit, else on as much of it as they
// need and on the CPU (docs/large_models.md).
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace forerun {

struct PlacementOptions {
  // So many of the last layers go to GPUs and RPC servers, the head with them; more than there are: all.
  // nullopt: as many as fit into their free memory.
  std::optional<int> n_gpu_layers = {};
  // The share of those layers that each gets, GPUs first, then RPC servers; any unit. Empty: by free
  // memory.
  std::vector<double> split = {};
  bool cpu_experts = false;  // mixtures of experts stay with the CPU
  // "host:port" of llama.cpp's RPC servers. Their protocol is neither encrypted nor protected: for
  // networks where everybody is trusted.
  std::vector<std::string> rpc = {};
};

}  // namespace forerun
