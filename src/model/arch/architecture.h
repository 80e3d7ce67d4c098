// What differs between model families: hyperparameters, tensors, and how a block
// is computed.
//
// Adding one: a file beside this with a class like those there, and a line each in
// families.h, architecture.cpp and CMakeLists.txt. Architectures have no state; one object serves every
// model.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/config.h"
#include "model/graph_builder.h"
#include "model/weight_loader.h"
#include "model/weights.h"

namespace forerun {

class Architecture {
 public:
  virtual ~Architecture() = default;

  // The value of general.architecture.
  virtual std::string_view name() const = 0;

  // Throws Error when the metadata lacks something or asks for what forerun cannot do.
  virtual ModelConfig config(const GgufMetadata& metadata) const = 0;

  // Whether the file has no tensors of a variant that is not ours.
  virtual bool computes(const GgufFile& /*file*/) const { return true; }

  // Declares the tensors of a layer. What is here: both blocks' norms, those that the config names,
  // and projections, with the biases and scales that the file has.
  virtual LayerWeights declare_layer(WeightLoader& loader, const ModelConfig& config, int layer) const;

  // One residual block: states [n_embd, n_rows] in, the same with the block's
  // contribution added out. What is here serves every family of pre-norm blocks
  // with rotary attention and a gated MLP; parts that a layer's weights do not have
  // (norms of queries and keys, norms after a block) are left out. An MLP reads the states, or, where
  // blocks are parallel, those that entered the layer.
  virtual ggml_tensor* attention(GraphBuilder& graph, int layer, ggml_tensor* states) const;
  virtual ggml_tensor* mlp(GraphBuilder& graph, int layer, const RowStream& rows) const;
  // What becomes of the states where a pass leaves the MLP out.
  virtual ggml_tensor* without_mlp(GraphBuilder& /*graph*/, int /*layer*/, ggml_tensor* states) const {
    return states;
  }

 protected:
  // What files call the norm before an MLP.
  virtual std::string_view mlp_norm() const { return "ffn_norm"; }
  // What they call the MLP that all tokens use beside experts: what its names end with.
  virtual std::string_view shared_mlp() const { return "_shexp"; }
};

// All of them, and the one of that name (nullptr: none).
std::span<const Architecture* const> architectures();
const Architecture* find_architecture(std::string_view name);

// Of models that see: that text alone rotates as it does in models that do not, whatever part of a head
// stands for which axis of a picture. Throws Error{kUnsupported} otherwise.
void require_text_sections(const GgufMetadata& metadata, std::string_view architecture);
// Of families none of whose models rotates a part of its heads. Throws likewise.
void require_whole_rotation(const ModelConfig& config);
// A soft cap of scores or logits. Throws Error{kInvalidFile} where it is negative.
float read_cap(const ConfigReader& reader, const char* name, float otherwise);
// What shares of experts are multiplied with; files have 0 for 1.
float read_experts_scale(const ConfigReader& reader);
// How tokens use experts, as the files of some families say; `usual`: how they are weighed where a file
// does not.
void read_experts_by_key(const ConfigReader& reader, ExpertGating usual, ExpertsConfig& experts);
// "blk.<layer>.", with which the names of a layer's tensors begin.
std::string layer_prefix(int layer);
// A norm of n numbers, with the weight and bias that such norms of the model have.
Norm declare_norm(WeightLoader& loader, const ModelConfig& config, const std::string& name, int64_t n);
// Norms of queries and keys.
void declare_head_norms(WeightLoader& loader, const ModelConfig& config, int layer,
                        AttentionWeights& attention);

}  // namespace forerun
