#include "support/gguf_builder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <random>

#include "core/check.h"
#include "core/test_numbers.h"
#include "gguf/gguf_file.h"

namespace forerun::test {
namespace {

std::vector<std::byte> as_bytes(std::span<const float> values) {
  const auto bytes = std::as_bytes(values);
  return {bytes.begin(), bytes.end()};
}

std::vector<int64_t> shape_of(const GgufTensor& tensor) {
  int n_dims = GGML_MAX_DIMS;
  while (n_dims > 1 && tensor.shape[n_dims - 1] == 1) --n_dims;
  return {tensor.shape, tensor.shape + n_dims};
}

// Adds tensors of normally distributed numbers.
class RandomTensors {
 public:
  RandomTensors(GgufBuilder& builder, uint32_t seed) : builder_(builder), random_(seed) {}

  // Scaled so that outputs are about as large as inputs.
  void matrix(const std::string& name, int n_in, int n_out) {
    add(name, {n_in, n_out}, 0.0f, 1.0f / std::sqrt(static_cast<float>(n_in)));
  }
  void stack(const std::string& name, int n_in, int n_out, int n) {
    add(name, {n_in, n_out, n}, 0.0f, 1.0f / std::sqrt(static_cast<float>(n_in)));
  }
  void embedding(const std::string& name, int n_embd, int n_vocab) {
    add(name, {n_embd, n_vocab}, 0.0f, 1.0f);
  }
  void norm(const std::string& name, int n) { add(name, {n}, 1.0f, 0.1f); }
  void bias(const std::string& name, int n) { add(name, {n}, 0.0f, 0.3f); }
  void biases(const std::string& name, int n_out, int n) { add(name, {n_out, n}, 0.0f, 0.3f); }
  void sinks(const std::string& name, int n) { add(name, {n}, 1.0f, 1.0f); }

 private:
  void add(const std::string& name, const std::vector<int64_t>& shape, float mean, float deviation) {
    size_t n = 1;
    for (const int64_t side : shape) n *= static_cast<size_t>(side);
    std::vector<float> values(n);
    fill_normally(values, random_(), mean, deviation);
    builder_.add_floats(name, shape, values);
  }

  GgufBuilder& builder_;
  std::mt19937 random_;
};

bool is_any_of(const std::string& name, std::initializer_list<const char*> names) {
  return std::ranges::find(names, name) != names.end();
}

// What the blocks of an architecture have.
struct Blocks {
  explicit Blocks(const std::string& name)
      : norms_means(is_any_of(name, {"starcoder2", "codeshell", "jais2", "nemotron", "orion", "stablelm",
                                     "olmo", "command-r", "cohere2"})),
        norm_weights(name != "olmo"),
        parallel(is_any_of(name, {"command-r", "cohere2"})),
        pre_norms(!is_any_of(name, {"olmo2", "exaone4"})),
        post_norms(!pre_norms || is_any_of(name, {"gemma2", "gemma3", "gemma4", "glm4"})),
        gates(!is_any_of(name, {"starcoder2", "codeshell", "jais2", "nemotron", "arcee"})),
        head_norms(is_any_of(name, {"qwen3", "qwen3moe", "qwen3vl", "gemma3", "gemma4", "olmo2", "olmoe",
                                    "exaone4", "hunyuan-dense", "maincoder"})),
        norms_heads_together(is_any_of(name, {"olmo2", "olmoe"})) {}

  bool norms_means;
  bool norm_weights;
  bool parallel;
  bool pre_norms;
  bool post_norms;
  bool gates;
  bool head_norms;
  bool norms_heads_together;
};

// Of attention with latent numbers.
constexpr int kLatent = 32, kRotated = 16, kQuery = 16, kValue = 32, kDown = 24;

// Of Gemma 4.
constexpr int kPerLayer = 16;

// Of mixtures.
constexpr int kExperts = 4;
constexpr int kExpertFf = 48;

bool is_mixture(const TinyModelSpec& spec) {
  return spec.architecture.ends_with("moe") ||
         is_any_of(spec.architecture, {"gpt-oss", "deepseek2", "llama4"});
}

void add_experts(RandomTensors& random, const TinyModelSpec& spec, const std::string& prefix) {
  random.matrix(prefix + "ffn_gate_inp.weight", spec.n_embd, kExperts);
  random.stack(prefix + "ffn_gate_exps.weight", spec.n_embd, kExpertFf, kExperts);
  random.stack(prefix + "ffn_up_exps.weight", spec.n_embd, kExpertFf, kExperts);
  random.stack(prefix + "ffn_down_exps.weight", kExpertFf, spec.n_embd, kExperts);
  if (spec.architecture == "gpt-oss") {
    random.bias(prefix + "ffn_gate_inp.bias", kExperts);
    random.biases(prefix + "ffn_gate_exps.bias", kExpertFf, kExperts);
    random.biases(prefix + "ffn_up_exps.bias", kExpertFf, kExperts);
    random.biases(prefix + "ffn_down_exps.bias", spec.n_embd, kExperts);
    return;
  }
  if (is_any_of(spec.architecture, {"qwen3moe", "olmoe"})) return;
  random.matrix(prefix + "ffn_gate_shexp.weight", spec.n_embd, kExpertFf);
  random.matrix(prefix + "ffn_up_shexp.weight", spec.n_embd, kExpertFf);
  random.matrix(prefix + "ffn_down_shexp.weight", kExpertFf, spec.n_embd);
  if (spec.architecture == "qwen2moe") random.bias(prefix + "ffn_gate_inp_shexp.weight", spec.n_embd);
}

void set_hyperparameters(GgufBuilder& builder, const TinyModelSpec& spec) {
  const std::string arch = spec.architecture + ".";
  const auto set = [&](const std::string& name, int value) {
    builder.set(arch + name, static_cast<uint32_t>(value));
  };
  builder.set("general.architecture", spec.architecture);
  set("block_count", spec.n_layers);
  set("embedding_length", spec.n_embd);
  set("context_length", 256);
  set("feed_forward_length", spec.n_ff);
  set("attention.head_count", spec.n_heads);
  set("attention.head_count_kv", spec.n_kv_heads);
  set("attention.key_length", spec.head_dim);
  set("attention.value_length", spec.head_dim);
  builder.set(arch + (Blocks(spec.architecture).norms_means ? "attention.layer_norm_epsilon"
                                                            : "attention.layer_norm_rms_epsilon"),
              1e-5f);
  builder.set(arch + "rope.freq_base", 10000.0f);
  if (is_mixture(spec)) {
    set("expert_count", kExperts);
    set("expert_used_count", 2);
    set("expert_feed_forward_length", kExpertFf);
    set("expert_shared_feed_forward_length", kExpertFf);
    set("expert_shared_count", 1);
    set("interleave_moe_layer_step", 1);
  }
  if (spec.architecture == "deepseek2") {
    set("attention.key_length_mla", kQuery + kRotated);
    set("attention.value_length_mla", kValue);
    set("attention.kv_lora_rank", kLatent);
    set("attention.q_lora_rank", kDown);
    set("rope.dimension_count", kRotated);
  }
  if (is_any_of(spec.architecture, {"gemma3", "gemma4"})) {
    set("attention.sliding_window", 4);
    set("attention.sliding_window_pattern", 2);
  }
  if (spec.architecture == "gemma4") {
    set("attention.key_length_swa", spec.head_dim);
    set("attention.value_length_swa", spec.head_dim);
    set("embedding_length_per_layer_input", kPerLayer);
  }
  if (is_any_of(spec.architecture, {"olmo2", "gpt-oss", "cohere2"})) set("attention.sliding_window", 4);
  if (spec.architecture == "hunyuan-dense") builder.set(arch + "rope.scaling.alpha", 100.0f);
  if (spec.architecture == "mistral3") builder.set(arch + "attention.temperature_scale", 0.1f);
  if (spec.architecture == "minicpm") {
    builder.set(arch + "embedding_scale", 12.0f).set(arch + "residual_scale", 0.25f);
    builder.set(arch + "logit_scale", 9.0f);
  }
}

}  // namespace

GgufBuilder::GgufBuilder(const GgufBuilder& other) : gguf_(gguf_init_empty()), tensors_(other.tensors_) {
  gguf_set_kv(gguf_.get(), other.gguf_.get());
}

GgufBuilder::GgufBuilder() : gguf_(gguf_init_empty()) {}

GgufBuilder& GgufBuilder::set(const std::string& key, uint32_t value) {
  gguf_set_val_u32(gguf_.get(), key.c_str(), value);
  return *this;
}

GgufBuilder& GgufBuilder::set(const std::string& key, float value) {
  gguf_set_val_f32(gguf_.get(), key.c_str(), value);
  return *this;
}

GgufBuilder& GgufBuilder::set(const std::string& key, const std::string& value) {
  gguf_set_val_str(gguf_.get(), key.c_str(), value.c_str());
  return *this;
}

GgufBuilder& GgufBuilder::remove(const std::string& key) {
  gguf_remove_key(gguf_.get(), key.c_str());
  return *this;
}

void GgufBuilder::add_tensor(const std::string& name, ggml_type type, const std::vector<int64_t>& shape,
                             std::vector<std::byte> data) {
  Tensor tensor{.name = name, .type = type, .shape = shape, .data = std::move(data)};
  const auto same =
      std::find_if(tensors_.begin(), tensors_.end(), [&](const Tensor& t) { return t.name == name; });
  if (same != tensors_.end()) {
    *same = std::move(tensor);
  } else {
    tensors_.push_back(std::move(tensor));
  }
}

void GgufBuilder::add_floats(const std::string& name, const std::vector<int64_t>& shape,
                             std::span<const float> values) {
  add_tensor(name, GGML_TYPE_F32, shape, as_bytes(values));
}

void GgufBuilder::remove_tensor(const std::string& name) {
  std::erase_if(tensors_, [&](const Tensor& tensor) { return tensor.name == name; });
}

void GgufBuilder::write(const std::filesystem::path& path) const {
  const ggml_context_ptr context(ggml_init({.mem_size = (tensors_.size() + 1) * ggml_tensor_overhead(),
                                            .mem_buffer = nullptr,
                                            .no_alloc = true}));
  const gguf_context_ptr file(gguf_init_empty());
  gguf_set_kv(file.get(), gguf_.get());
  for (const Tensor& tensor : tensors_) {
    ggml_tensor* info = ggml_new_tensor(context.get(), tensor.type,
                                        static_cast<int>(tensor.shape.size()), tensor.shape.data());
    CHECK(ggml_nbytes(info) == tensor.data.size());
    ggml_set_name(info, tensor.name.c_str());
    gguf_add_tensor(file.get(), info);
    gguf_set_tensor_data(file.get(), tensor.name.c_str(), tensor.data.data());
  }
  std::filesystem::remove(path);  // as in write_file
  CHECK(gguf_write_to_file(file.get(), path.c_str(), false));
}

GgufBuilder tiny_model(const TinyModelSpec& spec) {
  GgufBuilder builder;
  set_hyperparameters(builder, spec);
  RandomTensors random(builder, spec.seed);
  const int n_embd_q = spec.n_heads * spec.head_dim;
  const int n_embd_kv = spec.n_kv_heads * spec.head_dim;
  const Blocks blocks(spec.architecture);
  const auto norm = [&](const std::string& name) {
    if (blocks.norm_weights) random.norm(name + ".weight", spec.n_embd);
    if (blocks.norm_weights && blocks.norms_means && !blocks.parallel)
      random.bias(name + ".bias", spec.n_embd);
  };
  random.embedding("token_embd.weight", spec.n_embd, spec.n_vocab);
  const bool has_per_layer = spec.architecture == "gemma4";
  if (has_per_layer) {
    const int n_all = kPerLayer * spec.n_layers;
    random.embedding("per_layer_token_embd.weight", n_all, spec.n_vocab);
    random.matrix("per_layer_model_proj.weight", spec.n_embd, n_all);
    random.norm("per_layer_proj_norm.weight", kPerLayer);
  }
  for (int layer = 0; layer < spec.n_layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    if (blocks.pre_norms) norm(prefix + "attn_norm");
    const bool is_latent = spec.architecture == "deepseek2";
    if (is_latent) {
      random.matrix(prefix + "attn_q_a.weight", spec.n_embd, kDown);
      random.norm(prefix + "attn_q_a_norm.weight", kDown);
      random.matrix(prefix + "attn_q_b.weight", kDown, spec.n_heads * (kQuery + kRotated));
      random.matrix(prefix + "attn_kv_a_mqa.weight", spec.n_embd, kLatent + kRotated);
      random.norm(prefix + "attn_kv_a_norm.weight", kLatent);
      random.stack(prefix + "attn_k_b.weight", kQuery, kLatent, spec.n_heads);
      random.stack(prefix + "attn_v_b.weight", kLatent, kValue, spec.n_heads);
    } else {
      random.matrix(prefix + "attn_q.weight", spec.n_embd, n_embd_q);
      random.matrix(prefix + "attn_k.weight", spec.n_embd, n_embd_kv);
      random.matrix(prefix + "attn_v.weight", spec.n_embd, n_embd_kv);
    }
    if (is_any_of(spec.architecture, {"qwen2", "gpt-oss"})) {
      random.bias(prefix + "attn_q.bias", n_embd_q);
      random.bias(prefix + "attn_k.bias", n_embd_kv);
      random.bias(prefix + "attn_v.bias", n_embd_kv);
    }
    if (blocks.head_norms) {
      random.norm(prefix + "attn_q_norm.weight", blocks.norms_heads_together ? n_embd_q : spec.head_dim);
      random.norm(prefix + "attn_k_norm.weight",
                  blocks.norms_heads_together ? n_embd_kv : spec.head_dim);
    }
    random.matrix(prefix + "attn_output.weight", is_latent ? spec.n_heads * kValue : n_embd_q,
                  spec.n_embd);
    if (spec.architecture == "gpt-oss") {
      random.bias(prefix + "attn_output.bias", spec.n_embd);
      random.sinks(prefix + "attn_sinks.weight", spec.n_heads);
    }
    const bool has_other_name = is_any_of(spec.architecture, {"seed_oss", "glm4moe", "gpt-oss"});
    if (blocks.post_norms || has_other_name) norm(prefix + "post_attention_norm");
    if (blocks.pre_norms && !blocks.parallel && !has_other_name) norm(prefix + "ffn_norm");
    if (is_mixture(spec)) {
      add_experts(random, spec, prefix);
    } else {
      if (blocks.gates) random.matrix(prefix + "ffn_gate.weight", spec.n_embd, spec.n_ff);
      random.matrix(prefix + "ffn_up.weight", spec.n_embd, spec.n_ff);
      random.matrix(prefix + "ffn_down.weight", spec.n_ff, spec.n_embd);
    }
    if (blocks.post_norms) norm(prefix + "post_ffw_norm");
    if (has_per_layer) {
      random.matrix(prefix + "inp_gate.weight", spec.n_embd, kPerLayer);
      random.matrix(prefix + "proj.weight", kPerLayer, spec.n_embd);
      norm(prefix + "post_norm");
    }
  }
  norm("output_norm");
  random.matrix("output.weight", spec.n_embd, spec.n_vocab);
  return builder;
}

void write_twin(const std::filesystem::path& from, const std::filesystem::path& to) {
  const GgufFile file = GgufFile::open(from);
  GgufBuilder builder;
  gguf_set_kv(builder.metadata(), file.metadata().raw());
  for (size_t i = file.tensors().size(); i-- > 0;) {
    const GgufTensor& tensor = file.tensors()[i];
    builder.add_tensor(tensor.name, tensor.type, shape_of(tensor),
                       {tensor.data, tensor.data + tensor.n_bytes});
  }
  builder.write(to);
}

void copy_gguf(const std::filesystem::path& from, const std::filesystem::path& to,
               const std::function<void(StoredTensor&)>& change) {
  const GgufFile file = GgufFile::open(from);
  GgufBuilder builder;
  gguf_set_kv(builder.metadata(), file.metadata().raw());
  for (const char* key : {"split.no", "split.count", "split.tensors.count"}) builder.remove(key);
  for (const GgufTensor& tensor : file.tensors()) {
    const std::vector<int64_t> shape = shape_of(tensor);
    StoredTensor copy{.name = tensor.name,
                      .shape = shape,
                      .type = tensor.type,
                      .data = {tensor.data, tensor.data + tensor.n_bytes}};
    change(copy);
    builder.add_tensor(copy.name, copy.type, shape, std::move(copy.data));
  }
  builder.write(to);
}

void to_f32(StoredTensor& tensor) {
  if (tensor.type == GGML_TYPE_F32) return;
  int64_t n = 1;
  for (const int64_t side : tensor.shape) n *= side;
  std::vector<float> values(static_cast<size_t>(n));
  ggml_get_type_traits(tensor.type)->to_float(tensor.data.data(), values.data(), n);
  tensor.type = GGML_TYPE_F32;
  tensor.data = as_bytes(values);
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<std::byte> bytes(std::filesystem::file_size(path));
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  CHECK(file.good());
  return bytes;
}

void write_file(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  // File systems flush a file that was cut and rewritten, which is slow; a new one not.
  std::filesystem::remove(path);
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  CHECK(file.good());
}

}  // namespace forerun::test
