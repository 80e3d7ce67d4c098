#include "model/llama/llama_model.h"

#include <ggml-cpu.h>
#include <llama-arch.h>
#include <llama.h>

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "gguf/ggml_aborts.h"
#include "gguf/ggml_log.h"

namespace forerun {
namespace {

// Counts that some architectures have once for each layer: the largest.
int largest(const GgufMetadata& metadata, const std::string& key) {
  if (metadata.is_array(key)) {
    const auto values = metadata.get_int_array(key).value();
    return values.empty() ? 0 : static_cast<int>(*std::ranges::max_element(values));
  }
  return static_cast<int>(metadata.get_int(key).value_or(0));
}

// What libllama is told of where layers go; it reads some of it from here until it has loaded.
class PlacementParams {
 public:
  PlacementParams(const Device& device, const Placement& placement)
      : split_(llama_max_devices()), reads_in_place_(placement.from_file) {
    if (!placement.is_spread() && !device.is_host()) {
      devices_.push_back(device.raw());
      n_gpu_layers_ = -1;
    }
    // It numbers the layers from the first that is not the CPU's, and looks in which share of all of
    // them, the head included, a number lies: bounds of shares are between two numbers.
    double before = 0;
    for (const Placement::Part& part : placement.parts) {
      n_gpu_layers_ += part.n_layers;
      const bool is_last = &part == &placement.parts.back();
      const double end = is_last ? n_gpu_layers_ : n_gpu_layers_ - 0.5;
      split_[devices_.size()] = static_cast<float>(end - before);
      before = end;
      devices_.push_back(part.device.raw);
    }
    devices_.push_back(nullptr);
    if (!placement.cpu_experts) return;
    for (const char* name : expert_names()) overrides_.push_back({name, ggml_backend_cpu_buffer_type()});
    overrides_.push_back({nullptr, nullptr});
  }

  void set(llama_model_params& params) {
    params.devices = devices_.data();
    params.n_gpu_layers = n_gpu_layers_;
    params.tensor_split = split_.data();
    if (!overrides_.empty()) params.tensor_buft_overrides = overrides_.data();
    if (reads_in_place_) {  // else it packs some of them into memory
      params.load_mode = LLAMA_LOAD_MODE_MMAP;
      params.use_extra_bufts = false;
    }
  }

 private:
  std::vector<ggml_backend_dev_t> devices_;
  std::vector<float> split_;
  std::vector<llama_model_tensor_buft_override> overrides_;
  int n_gpu_layers_ = 0;
  bool reads_in_place_;
};

// Matrices of each head, as latent attention has them: ggml's kernels for AMX take what holds them for
// theirs and do not multiply with it, which would end the process.
bool has_head_matrices(const GgufFile& file) {
  return std::ranges::any_of(file.tensors(), [](const GgufTensor& tensor) {
    return tensor.name.ends_with(".attn_k_b.weight");
  });
}

}  // namespace

bool llama_knows(const std::string& architecture) {
  return llm_arch_from_string(architecture) != LLM_ARCH_UNKNOWN;
}

LlamaModel::LlamaModel(const GgufFile& file, const Device& device, const Placement& placement,
                       const std::function<void(double)>& progress)
    : uses_cpu_(device.is_host() || placement.is_spread()), servers_(placement.servers) {
  GgmlLogCapture log;
  const GgmlAbortsThrow aborts_throw;  // it checks a file in that way, too
  llama_model_params params = llama_model_default_params();
  PlacementParams places(device, placement);
  places.set(params);
  if (ggml_cpu_has_amx_int8() != 0 && has_head_matrices(file)) params.use_extra_bufts = false;
  params.progress_callback = [](float share, void* to) {
    const auto& tell = *static_cast<const std::function<void(double)>*>(to);
    if (tell) tell(static_cast<double>(share));
    return true;
  };
  params.progress_callback_user_data = const_cast<std::function<void(double)>*>(&progress);
  std::string reason;
  try {
    model_ = {llama_model_load_from_file(file.path().c_str(), params), llama_model_free};
  } catch (const std::exception& error) {
    reason = error.what();
  }
  if (model_ == nullptr) {
    if (reason.empty()) reason = log.first_error();
    check_servers();
    fail(ErrorCode::kUnsupported, "libllama cannot load {}: {}", file.path().string(), reason);
  }
  check_servers();
  if (!llama_model_has_decoder(model_.get()) || llama_model_has_encoder(model_.get())) {
    fail(ErrorCode::kUnsupported, "{} has an encoder, and forerun runs models that decode alone",
         file.path().string());
  }
}

ModelConfig read_llama_config(const GgufMetadata& metadata) {
  ModelConfig config;
  config.architecture = metadata.get_string("general.architecture").value_or("");
  config.name = metadata.get_string("general.name").value_or("");
  const auto count = [&](const char* name) {
    return largest(metadata, config.architecture + "." + name);
  };
  config.n_layers = count("block_count");
  config.n_embd = count("embedding_length");
  config.n_ctx_train = count("context_length");
  config.n_ff = count("feed_forward_length");
  config.heads.n = count("attention.head_count");
  config.heads.n_kv = count("attention.head_count_kv");
  config.heads.dim = count("attention.key_length");
  if (config.heads.dim == 0 && config.heads.n > 0) config.heads.dim = config.n_embd / config.heads.n;
  return config;
}

ModelConfig LlamaModel::config(const GgufMetadata& metadata) const {
  ModelConfig config = read_llama_config(metadata);
  config.n_layers = llama_model_n_layer(raw());
  config.n_embd = llama_model_n_embd(raw());
  config.n_vocab = llama_vocab_n_tokens(llama_model_get_vocab(raw()));
  config.n_ctx_train = llama_model_n_ctx_train(raw());
  return config;
}

bool LlamaModel::is_recurrent() const {
  return llama_model_is_recurrent(raw()) || llama_model_is_hybrid(raw());
}

}  // namespace forerun
