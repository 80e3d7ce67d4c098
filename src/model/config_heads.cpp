#include "model/config_heads.h"

#include <algorithm>
#include <functional>

#include "core/error.h"

namespace forerun {

HeadsConfig read_heads(const ConfigReader& reader, int n_embd, const std::string& suffix,
                       const std::function<bool(size_t layer)>& of) {
  HeadsConfig heads;
  heads.n = reader.get_uniform_count("attention.head_count", std::nullopt, of);
  heads.n_kv = reader.get_uniform_count("attention.head_count_kv", heads.n, of);
  if (heads.n % heads.n_kv != 0) {
    fail(ErrorCode::kInvalidFile, "{} query heads cannot share {} key-value heads", heads.n, heads.n_kv);
  }
  const int default_dim = std::max(1, n_embd / heads.n);
  heads.dim = reader.get_count_or("attention.key_length" + suffix, default_dim);
  if (reader.get_count_or("attention.value_length" + suffix, default_dim) != heads.dim) {
    fail(ErrorCode::kUnsupported, "keys and values of different head sizes are not supported");
  }
  if (static_cast<int64_t>(heads.n) * heads.dim > ConfigReader::kMaxCount) {
    fail(ErrorCode::kInvalidFile, "{} heads of size {} are too many", heads.n, heads.dim);
  }
  return heads;
}

void read_windowed_kind(const ConfigReader& reader, ModelConfig& config) {
  config.window = reader.get_count("attention.sliding_window");
  config.layer_is_windowed = read_window_pattern(reader, config.n_layers, 0);
  const auto windowed = [&](size_t layer) {
    return layer < config.layer_is_windowed.size() && config.layer_is_windowed[layer];
  };
  config.heads = read_heads(reader, config.n_embd, "", std::not_fn(windowed));
  config.window_heads = read_heads(reader, config.n_embd, "_swa", windowed);
  config.layer_n_ff = reader.get_layer_counts("feed_forward_length", config.n_layers);
  config.n_ff = std::ranges::max(config.layer_n_ff);
}

void read_latent(const ConfigReader& reader, ModelConfig& config) {
  if (!reader.metadata().has(reader.key("attention.key_length_mla")))
    fail(ErrorCode::kUnsupported, "latent attention whose keys are made of it is not supported");
  LatentConfig& latent = config.latent;
  latent.n = reader.get_count("attention.kv_lora_rank");
  latent.n_rotated = reader.get_count("rope.dimension_count");
  const int n_key = reader.get_count("attention.key_length_mla");
  latent.n_query = n_key - latent.n_rotated;
  latent.n_value = reader.get_count("attention.value_length_mla");
  latent.n_down = reader.get_count_or_none("attention.q_lora_rank");
  config.heads.n = reader.get_uniform_count("attention.head_count", std::nullopt);
  config.heads.n_kv = 1;
  config.heads.dim = latent.n + latent.n_rotated;
  if (latent.n_query < 1 || latent.n_rotated % 2 != 0) {
    fail(ErrorCode::kInvalidFile, "{} of {} does not fit keys of {}", reader.key("rope.dimension_count"),
         latent.n_rotated, n_key);
  }
  for (const int n : {latent.n, latent.n_value}) {
    if (n % kMatrixGrain == 0) continue;
    fail(ErrorCode::kUnsupported, "latent attention of {} numbers is not supported: multiples of {} are",
         n, kMatrixGrain);
  }
  if (static_cast<int64_t>(config.heads.n) * std::max(config.heads.dim, n_key) >
      ConfigReader::kMaxCount) {
    fail(ErrorCode::kInvalidFile, "{} heads of size {} are too many", config.heads.n, n_key);
  }
}

}  // namespace forerun
