// A model that libllama computes: what we have no architecture of our own for.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <string>

#include "gguf/gguf_file.h"
#include "model/config.h"
#include "model/device.h"
#include "model/placement.h"

struct llama_model;

namespace forerun {

// Whether libllama has an architecture of that name.
bool llama_knows(const std::string& architecture);
// What the metadata of such a model says; sizes of parts that only our own graphs need may be missing.
ModelConfig read_llama_config(const GgufMetadata& metadata);

class LlamaModel {
 public:
  // Throws Error, which says why libllama does not take it.
  LlamaModel(const GgufFile& file, const Device& device, const Placement& placement,
             const std::function<void(double)>& progress);

  ModelConfig config(const GgufMetadata& metadata) const;
  // Its memory is a state, which has nothing of single tokens: wholly or in some layers.
  bool is_recurrent() const;
  // Whether some of it is computed on the CPU, by threads of ours.
  bool uses_cpu() const { return uses_cpu_; }
  // Throws Error{kIo} if an RPC server was lost that has a part of it.
  void check_servers() const {
    if (servers_) servers_->check();
  }
  llama_model* raw() const { return model_.get(); }

 private:
  bool uses_cpu_;
  std::shared_ptr<const RpcServers> servers_;  // the model goes first
  std::shared_ptr<llama_model> model_;
};

}  // namespace forerun
