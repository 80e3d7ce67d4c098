// A model ready to run: its file, its configuration and its weights, on one device or spread over
// several.
//
// Const after loading; any number of Executors (executor.h) can share one, from the
// thread that its device belongs to (device.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/ids.h"
#include "gguf/gguf_file.h"
#include "model/arch/architecture.h"
#include "model/config.h"
#include "model/device.h"
#include "model/llama/llama_model.h"
#include "model/model_part.h"
#include "model/placement.h"

namespace forerun {

// Identifies the weights: stable across runs and machines, different for different models.
// Costs a read of the header and a little of every tensor.
uint64_t model_fingerprint(const GgufFile& file);

class Model {
 public:
  // `progress` gets the share of weights loaded; may be empty. `placement` is place_model()'s of the
  // file and the device. Throws Error.
  static std::shared_ptr<const Model> load(std::shared_ptr<const GgufFile> file,
                                           std::shared_ptr<Device> device,
                                           const std::function<void(double)>& progress = {},
                                           Placement placement = {});
  static std::shared_ptr<const Model> load(GgufFile file, std::shared_ptr<Device> device,
                                           const std::function<void(double)>& progress = {});

  const GgufFile& file() const { return *file_; }
  const ModelConfig& config() const { return config_; }
  // In the order in which a pass first meets them; none where libllama computes it.
  std::span<const ModelPart> parts() const { return parts_; }
  // By block: which part computes it.
  std::span<const int> part_of_block() const { return part_of_block_; }
  int head_part() const { return head_part_; }
  // How its blocks are computed; where there is one, layers can be left out and states seen.
  const Architecture& architecture() const { return *architecture_; }
  bool has_blocks() const { return architecture_ != nullptr; }
  // Throws Error{kUnsupported}, which says what for, where there is none.
  void require_blocks(std::string_view what) const;
  // What computes it where we have no architecture for it; nullptr: we have.
  const LlamaModel* llama() const { return llama_.get(); }
  // Why that is so, as a clause.
  std::string why_libllama() const;
  const Placement& placement() const { return placement_; }
  // That it was wanted on.
  Device& device() const { return *device_; }
  // Whose threads do what is left to the CPU between passes: the CPU's, if it has a part.
  Device& helping_device() const;
  // What our kernels that compute it are called; "": others compute some of it.
  std::string kernels_name() const;
  const std::shared_ptr<Device>& shared_device() const { return device_; }

  // Writes the model's embedding of a token, already scaled: n_embd floats.
  void embed(TokenId token, std::span<float> embedding) const;
  // The same for what its layers have of the token for themselves: n_embd_per_layer * n_layers floats.
  void embed_per_layer(TokenId token, std::span<float> embedding) const;

  uint64_t fingerprint() const;  // model_fingerprint() of its file

 private:
  explicit Model(std::shared_ptr<const GgufFile> file) : file_(std::move(file)) {}

  std::shared_ptr<const GgufFile> file_;
  void load_parts(const std::function<void(double)>& progress);
  GpuKernels* serving_gpu_kernels(const ModelPart& part) const;

  std::shared_ptr<Device> device_;
  Placement placement_;
  const Architecture* architecture_ = nullptr;
  std::unique_ptr<LlamaModel> llama_;
  ModelConfig config_;
  const GgufTensor* embedding_ = nullptr;            // [n_embd, n_vocab], read from the mapped file
  const GgufTensor* per_layer_embedding_ = nullptr;  // [n_embd_per_layer * n_layers, n_vocab], likewise
  std::vector<ModelPart> parts_;
  std::vector<int> part_of_block_;
  int head_part_ = 0;
};

// The architecture of ours that computes the file; nullptr: libllama does. Checks that one of the two
// can, without loading weights. Throws Error.
const Architecture* architecture_of(const GgufFile& file);

}  // namespace forerun
