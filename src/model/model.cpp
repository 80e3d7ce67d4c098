#include "model/model.h"

#include <ggml-cpu.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <deque>
#include <string>

#include "core/check.h"
#include "core/error.h"
#include "core/hash.h"

namespace forerun {
namespace {

constexpr const char* kEmbedding = "token_embd.weight";
constexpr const char* kPerLayerEmbedding = "per_layer_token_embd.weight";

// A table with a row of n numbers for each token.
const GgufTensor* find_embedding(const GgufFile& file, const char* name, int64_t n) {
  const GgufTensor* embedding = file.find_tensor(name);
  if (embedding == nullptr)
    fail(ErrorCode::kInvalidFile, "{} has no tensor {}", file.path().string(), name);
  const bool fits = embedding->shape[0] == n && embedding->shape[1] >= 1 &&
                    embedding->shape[1] <= INT32_MAX && embedding->shape[2] == 1 &&
                    embedding->shape[3] == 1;
  if (!fits) {
    fail(ErrorCode::kInvalidFile,
         "tensor {} has shape {} x {} where the metadata asks for {} x vocabulary", name,
         embedding->shape[0], embedding->shape[1], n);
  }
  if (embedding->type != GGML_TYPE_F32 && ggml_get_type_traits(embedding->type)->to_float == nullptr) {
    fail(ErrorCode::kUnsupported, "tensor {} has type {}, which forerun cannot read as numbers", name,
         ggml_type_name(embedding->type));
  }
  return embedding;
}

// A row of such a table, times `scale`.
void read_embedding(const GgufTensor& table, TokenId token, float scale, std::span<float> embedding) {
  const auto n = static_cast<int64_t>(embedding.size());
  const std::byte* row = table.data + static_cast<size_t>(to_int(token)) * ggml_row_size(table.type, n);
  if (table.type == GGML_TYPE_F32) {
    std::memcpy(embedding.data(), row, embedding.size_bytes());
  } else if (table.type == GGML_TYPE_F16) {  // what the type's traits have is five times as slow
    ggml_cpu_fp16_to_fp32(reinterpret_cast<const ggml_fp16_t*>(row), embedding.data(), n);
  } else if (table.type == GGML_TYPE_BF16) {
    ggml_cpu_bf16_to_fp32(reinterpret_cast<const ggml_bf16_t*>(row), embedding.data(), n);
  } else {
    ggml_get_type_traits(table.type)->to_float(row, embedding.data(), n);
  }
  if (scale == 1.0f) return;
  for (float& value : embedding) value *= scale;
}

void declare_weights(WeightLoader& loader, const Architecture& architecture, const ModelConfig& config,
                     ModelPart& part) {
  ModelWeights& weights = part.weights;
  for (int layer = 0; layer < config.n_layers; ++layer) {
    weights.layers.push_back(architecture.declare_layer(loader, config, layer));
  }
  weights.rope_factors = loader.optional_vector("rope_freqs.weight", config.rope.n_dims / 2);
  if (config.n_embd_per_layer > 0) {
    const int64_t n = int64_t{config.n_embd_per_layer} * config.n_layers;
    weights.per_layer = {
        .projection = loader.matrix("per_layer_model_proj.weight", config.n_embd, n),
        .norm = declare_norm(loader, config, "per_layer_proj_norm", config.n_embd_per_layer)};
    weights.per_layer->projection.scale =
        loader.constant(1.0f / std::sqrt(static_cast<float>(config.n_embd)));
  }
  if (!part.has_head) return;
  weights.output_norm = declare_norm(loader, config, "output_norm", config.n_embd);
  if (loader.has("output.weight")) {
    weights.head = loader.linear("output", config.n_embd, config.n_vocab);
  } else {
    // Tied: the embedding serves as the head too.
    weights.head = loader.matrix(kEmbedding, config.n_embd, config.n_vocab);
    weights.head.bias = loader.optional_vector("output.bias", config.n_vocab);
  }
  if (config.logit_scale != 1.0f) {
    if (weights.head.scale != nullptr || weights.head.bias != nullptr)
      fail(ErrorCode::kUnsupported,
           "a head with a scale or a bias of its own whose logits are scaled, too");
    weights.head.scale = loader.constant(config.logit_scale);
  }
}

// Whether our kernels can multiply with everything that a part multiplies with. What chooses experts may
// be of any type (WeightLoader::decisive_linear); biases and scales of experts they do not know, nor
// gates and ups in one matrix.
bool can_multiply_all(const GpuKernels& gpu, const GgufFile& file, const ModelPart& part) {
  const bool is_tied = file.find_tensor("output.weight") == nullptr;
  return std::ranges::all_of(file.tensors(), [&](const GgufTensor& tensor) {
    const std::string_view name = tensor.name;
    const bool is_head = !name.starts_with("blk.");
    const bool is_used = is_head ? part.has_head && (is_tied || name != kEmbedding) : part.needs(tensor);
    if (!is_used) return true;
    if (name.ends_with("_exps.bias") || name.ends_with("_exps.scale")) return false;
    if (name.find(".ffn_gate_up_exps.") != name.npos) return false;
    const bool is_matrix = tensor.shape[1] > 1 && name.find(".ffn_gate_inp.") == name.npos;
    return !is_matrix || gpu.can_multiply(tensor.type);
  });
}

// Whether a file has tensors that change what its architecture computes, or has them in other pieces.
bool is_laid_out_otherwise(const GgufFile& file) {
  return std::ranges::any_of(file.tensors(), [](const GgufTensor& tensor) {
    const std::string_view name = tensor.name;
    // Factors by the length of the context; scales of what experts have before they are activated; and
    // experts each by themselves, as older files have them.
    return name == "rope_factors_long.weight" ||
           (name.ends_with("_exps.scale") && name.find(".ffn_down_exps.") == name.npos) ||
           name.find(".ffn_gate.0.") != name.npos;
  });
}

// Whether blocks have nothing that our kernels on GPUs do not.
bool has_common_blocks(const ModelConfig& config) {
  return config.norm_kind == NormKind::kRms && config.has_norm_weights && config.has_block_norms &&
         config.has_gates &&
         (config.activation == Activation::kSilu || config.activation == Activation::kGelu) &&
         config.head_norms == HeadNorms::kEach && config.temperature_scale == 0.0f &&
         !config.has_sinks && !config.has_parallel_blocks && !config.has_layer_scales &&
         config.latent.n == 0;
}

}  // namespace

GpuKernels* Model::serving_gpu_kernels(const ModelPart& part) const {
  GpuKernels* gpu = part.device->gpu_kernels();
  const bool serves = gpu != nullptr && has_common_blocks(config_) &&
                      gpu->serves(config_, part.device->kv_type()) &&
                      can_multiply_all(*gpu, *file_, part);
  return serves ? gpu : nullptr;
}

const Architecture* architecture_of(const GgufFile& file) {
  const auto name = file.metadata().get_string("general.architecture");
  if (!name)
    fail(ErrorCode::kInvalidFile, "{} does not say which architecture it has", file.path().string());
  const Architecture* architecture = find_architecture(*name);
  if (architecture != nullptr && !is_laid_out_otherwise(file)) {
    try {
      architecture->config(file.metadata());
      if (architecture->computes(file)) return architecture;
    } catch (const Error& error) {  // a variant that is not ours
      if (error.code() != ErrorCode::kUnsupported) throw;
    }
  }
  if (!llama_knows(*name)) {
    fail(ErrorCode::kUnsupported,
         "architecture '{}' is not supported: neither forerun nor the libllama in it knows it", *name);
  }
  return nullptr;
}

std::shared_ptr<const Model> Model::load(GgufFile file, std::shared_ptr<Device> device,
                                         const std::function<void(double)>& progress) {
  return load(std::make_shared<const GgufFile>(std::move(file)), std::move(device), progress);
}

std::shared_ptr<const Model> Model::load(std::shared_ptr<const GgufFile> file,
                                         std::shared_ptr<Device> device,
                                         const std::function<void(double)>& progress,
                                         Placement placement) {
  std::shared_ptr<Model> model(new Model(std::move(file)));
  model->device_ = std::move(device);
  model->placement_ = std::move(placement);
  const Architecture* architecture = architecture_of(*model->file_);
  if (architecture != nullptr &&
      !model->placement_.suits(architecture->config(model->file_->metadata())))
    model->placement_.by_libllama = true;
  if (!model->placement_.needs_libllama()) model->architecture_ = architecture;
  if (model->architecture_ == nullptr) {
    model->llama_ =
        std::make_unique<LlamaModel>(*model->file_, *model->device_, model->placement_, progress);
    model->config_ = model->llama_->config(model->file_->metadata());
    return model;
  }
  model->config_ = model->architecture_->config(model->file_->metadata());
  model->embedding_ = find_embedding(*model->file_, kEmbedding, model->config_.n_embd);
  model->config_.n_vocab = static_cast<int>(model->embedding_->shape[1]);
  if (model->config_.n_embd_per_layer > 0) {
    model->per_layer_embedding_ =
        find_embedding(*model->file_, kPerLayerEmbedding,
                       int64_t{model->config_.n_embd_per_layer} * model->config_.n_layers);
    if (model->per_layer_embedding_->shape[1] != model->embedding_->shape[1])
      fail(ErrorCode::kInvalidFile, "tensor {} is of another vocabulary", kPerLayerEmbedding);
  }
  model->load_parts(progress);
  return model;
}

void Model::load_parts(const std::function<void(double)>& progress) {
  parts_ = parts_of(device_, placement_, config_);
  part_of_block_.assign(static_cast<size_t>(2 * config_.n_layers), 0);
  std::deque<WeightLoader> loaders;
  size_t n_total = 0, n_loaded = 0;
  for (size_t p = 0; p < parts_.size(); ++p) {
    ModelPart& part = parts_[p];
    const int head_dim = std::max(config_.heads.dim, config_.window_heads.value_or(config_.heads).dim);
    if (part.device->kernels() != nullptr && head_dim > kMaxHeadDim) {
      fail(ErrorCode::kUnsupported, "the model has heads of size {}; on CPUs forerun takes up to {}",
           head_dim, kMaxHeadDim);
    }
    for (int b = 0; b < part.blocks.n_blocks(); ++b) {
      if (part.blocks.runs(BlockId{b})) part_of_block_[static_cast<size_t>(b)] = static_cast<int>(p);
    }
    if (part.has_head) head_part_ = static_cast<int>(p);
    part.gpu = serving_gpu_kernels(part);
    WeightLoader& loader = loaders.emplace_back(*file_, part);
    declare_weights(loader, *architecture_, config_, part);
    n_total += loader.n_bytes();
  }
  for (size_t p = 0; p < parts_.size(); ++p) {
    const size_t n_bytes = loaders[p].n_bytes();
    const auto tell = [&](double share) {
      const double n = static_cast<double>(n_loaded) + share * static_cast<double>(n_bytes);
      if (progress && n_total > 0) progress(n / static_cast<double>(n_total));
    };
    parts_[p].storage = loaders[p].load(tell);
    n_loaded += n_bytes;
  }
}

void Model::embed(TokenId token, std::span<float> embedding) const {
  CHECK(to_int(token) >= 0 && to_int(token) < config_.n_vocab &&
        embedding.size() == static_cast<size_t>(config_.n_embd));
  read_embedding(*embedding_, token, config_.embedding_scale, embedding);
}

void Model::embed_per_layer(TokenId token, std::span<float> embedding) const {
  CHECK(to_int(token) >= 0 && to_int(token) < config_.n_vocab &&
        embedding.size() == static_cast<size_t>(per_layer_embedding_->shape[0]));
  read_embedding(*per_layer_embedding_, token, std::sqrt(static_cast<float>(config_.n_embd_per_layer)),
                 embedding);
}

void Model::require_blocks(std::string_view what) const {
  if (has_blocks()) return;
  fail(ErrorCode::kUnsupported, "{} needs the model's layers, and {}", what, why_libllama());
}

std::string Model::why_libllama() const {
  if (placement_.servers) return "a model with layers on other machines runs through libllama";
  if (placement_.by_libllama && placement_.is_spread())
    return "this model with layers on several devices runs through libllama";
  if (placement_.from_file || placement_.by_libllama)
    return "a model that is larger than memory runs through libllama";
  return fmt::format("'{}' models run through libllama", config_.architecture);
}

Device& Model::helping_device() const {
  const auto on_cpu =
      std::ranges::find_if(parts_, [](const ModelPart& p) { return p.device->is_host(); });
  return on_cpu != parts_.end() ? *on_cpu->device : *device_;
}

std::string Model::kernels_name() const {
  std::string names;
  for (const ModelPart& part : parts_) {
    if (!part.has_own_kernels()) return "";
    const std::string name = part.gpu != nullptr ? part.gpu->name() : part.device->kernels()->name;
    if (names.find(name) == names.npos) names += (names.empty() ? "" : ", ") + name;
  }
  return names;
}

uint64_t Model::fingerprint() const {
  return model_fingerprint(*file_);
}

uint64_t model_fingerprint(const GgufFile& file) {
  constexpr size_t kSample = 256;
  StableHash hash;
  for (const GgufTensor& tensor : file.tensors()) {
    hash.add(std::string_view(tensor.name));
    hash.add(static_cast<uint64_t>(tensor.type));
    for (const int64_t n : tensor.shape) hash.add(static_cast<uint64_t>(n));
    // The middle of a tensor differs even where two fine-tunes share a start.
    const size_t sample = std::min(kSample, tensor.n_bytes);
    hash.add(std::span(tensor.data + (tensor.n_bytes - sample) / 2, sample));
  }
  return hash.value();
}

}  // namespace forerun
