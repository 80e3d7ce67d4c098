// The hyperparameters of a model, read from its metadata and checked.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "gguf/metadata.h"
#include "model/config_reader.h"

namespace forerun {

enum class Activation {
  kSilu,
  kGelu,
  kReluSquared,
  kLimitedSwish,  // of gates alone: see GateActivation
};

// How numbers are normed before a weight multiplies them.
enum class NormKind {
  kNone,   // not at all
  kRms,    // divided by the root of their mean square
  kLayer,  // less their mean, then the same
};

// What the norms of queries and keys are over, in models that have such.
enum class HeadNorms {
  kEach,         // every head by itself
  kEachRotated,  // the same, behind rotation
  kTogether,     // all heads of a row at once
};

enum class RopeLayout {
  kPairs,   // rotates elements 2i and 2i + 1 (llama)
  kHalves,  // rotates elements i and i + d/2 (NeoX style)
};

// Rotary position embedding with its context-extension scalings. Linear scaling is
// freq_scale alone; YaRN sets ext_factor as well; Llama 3's factors are a tensor.
// How YaRN stretches rotation: frequencies of dimensions below the first are kept, beyond the second
// interpolated, between them mixed.
struct RopeStretch {
  float low_dim;
  float high_dim;
  float magnitude;  // of cosines and sines
};

struct RopeConfig {
  RopeLayout layout = RopeLayout::kPairs;
  int n_dims = 0;
  int n_ctx_original = 0;  // context before YaRN stretched it
  float freq_base = 10000.0f;
  float freq_scale = 1.0f;
  float ext_factor = 0.0f;
  float attn_factor = 1.0f;
  float beta_fast = 32.0f;
  float beta_slow = 1.0f;
  bool has_factors = true;  // ModelWeights::rope_factors, in models that have such

  RopeStretch stretch() const;
};

// How a token's experts share it.
enum class ExpertGating {
  kSoftmax,          // over all of them
  kSigmoid,          // each by itself
  kSoftmaxOfChosen,  // over those it uses
};

// A mixture: MLPs of which each token uses a few.
struct ExpertsConfig {
  // Shares that sum up to less are divided by it; as libllama has it, the least of half precision.
  static constexpr float kLeastSum = 6.103515625e-5f;

  static constexpr int kMost = 1024, kMostUsed = 64;

  int n_all = 0;  // 0: the model is none
  int n_used = 0;
  int n_ff = 0;
  int n_ff_shared = 0;         // of the MLP that all tokens use beside them; 0: there is none
  bool weighs_shared = false;  // by what the token says
  int n_dense_layers = 0;      // the first ones, which have one MLP each
  ExpertGating gating = ExpertGating::kSoftmax;
  bool normalises = true;      // shares of those that are used sum up to 1
  float scale = 1.0f;          // of shares
  bool has_norms = false;      // ExpertWeights::Norms
  int step = 1;                // of so many layers the last one has experts, the others one MLP each
  bool weighs_inputs = false;  // whether shares are of what experts read, not of what they contribute
};

// Which tokens a layer with a window sees.
struct SlidingWindow {
  int n = 0;             // the last n; 0: all
  bool in_runs = false;  // of the run of n tokens that the position is in, not of all

  // How many a token at that position sees, where its text is as long.
  int size_at(int position) const { return in_runs && n > 0 ? position % n + 1 : n; }
};

// Of a layer's attention.
struct HeadsConfig {
  int n = 0;     // of queries
  int n_kv = 0;  // of keys, and of values
  int dim = 0;   // numbers of each

  int64_t n_embd_q() const { return int64_t{n} * dim; }
  int64_t n_embd_kv() const { return int64_t{n_kv} * dim; }
};

// Attention whose heads all look at the same latent numbers of a cell: what they make of a query's first
// numbers is compared with these, the other numbers of the query with a key that is rotated. What comes
// out is latent too, and each head's values are made of it.
struct LatentConfig {
  int n = 0;          // latent numbers; 0: attention has none
  int n_rotated = 0;  // numbers of the key that is rotated, behind them
  int n_query = 0;    // of a head's query before the rotated ones
  int n_value = 0;    // of a head's values
  int n_down = 0;     // what queries are made of; 0: of the states
};

struct ModelConfig {
  std::string architecture;
  std::string name;
  int n_layers = 0;
  int n_embd = 0;
  int n_vocab = 0;
  int n_ctx_train = 0;
  HeadsConfig heads;  // with latent numbers: what cells have
  LatentConfig latent;
  int n_ff = 0;  // the largest
  float norm_eps = 1e-5f;
  RopeConfig rope;
  ExpertsConfig experts;

  // What differs between architectures; the defaults are Llama's.
  Activation activation = Activation::kSilu;
  bool has_gates = true;             // whether MLPs have one
  bool has_block_norms = true;       // whether what blocks read is normed
  bool has_post_norms = false;       // whether what they contribute is
  bool has_parallel_blocks = false;  // whether the MLP of a layer reads what its attention does
  bool has_head_norms = false;       // whether queries and keys are
  bool has_value_norms = false;      // whether values are, head by head and without weights
  bool may_reuse_keys = false;  // whether layers without windows may take keys, before norms, for values
  NormKind norm_kind = NormKind::kRms;
  bool has_norm_weights = true;
  HeadNorms head_norms = HeadNorms::kEach;
  float embedding_scale = 1.0f;
  float attention_scale = 1.0f;    // of scores; read_config: 1 / sqrt(heads.dim)
  float attention_softcap = 0.0f;  // of scores; 0: none
  bool has_sinks = false;          // AttentionWeights::sinks
  float query_scale = 1.0f;        // of queries, before attention rounds them
  // Queries grow by `temperature_scale` times the logarithm of how many runs of `temperature_length`
  // tokens have begun at their position. 0: they do not.
  float temperature_scale = 0.0f;
  int temperature_length = 0;
  int temperature_offset = 0;             // of positions
  bool temperature_is_of_others = false;  // whether only layers have it that do not rotate
  float residual_scale = 1.0f;            // of what a block contributes
  float logit_scale = 1.0f;
  float logit_softcap = 0.0f;               // 0: none
  std::vector<bool> layer_rotates;          // per layer; empty: all do
  int window = 0;                           // sliding-window size in tokens; 0: no layer has one
  bool window_in_runs = false;              // SlidingWindow
  std::vector<bool> layer_is_windowed;      // per layer; empty: none is
  RopeConfig window_rope;                   // for windowed layers
  std::optional<HeadsConfig> window_heads;  // of these, where they have others
  // Layers from this one on look at the cells of the last of their kind, windowed or not, before it.
  std::optional<int> first_sharing_cells;
  std::vector<int> layer_n_ff;    // per layer; empty: all have n_ff
  int n_embd_per_layer = 0;       // numbers of a token that each layer has for itself; 0: none
  bool has_layer_scales = false;  // whether states are multiplied with a number behind each layer

  bool is_windowed(int layer) const {
    return window > 0 && layer_is_windowed[static_cast<size_t>(layer)];
  }
  SlidingWindow sliding_window() const { return {.n = window, .in_runs = window_in_runs}; }
  bool has_experts(int layer) const {
    return experts.n_all > 0 && layer >= experts.n_dense_layers && (layer + 1) % experts.step == 0;
  }
  bool rotates(int layer) const {
    return layer_rotates.empty() || layer_rotates[static_cast<size_t>(layer)];
  }
  bool has_temperature(int layer) const {
    return temperature_scale != 0.0f && !(temperature_is_of_others && rotates(layer));
  }
  // What a query at that position is multiplied with, beside query_scale.
  float temperature(int position) const;
  const RopeConfig& rope_of(int layer) const { return is_windowed(layer) ? window_rope : rope; }
  const HeadsConfig& heads_of(int layer) const {
    return window_heads && is_windowed(layer) ? *window_heads : heads;
  }
  int n_ff_of(int layer) const {
    return layer_n_ff.empty() ? n_ff : layer_n_ff[static_cast<size_t>(layer)];
  }
  // Whose cells a layer looks at: its own, mostly.
  int cells_layer(int layer) const;
  bool has_cells(int layer) const { return cells_layer(layer) == layer; }
  // Keys and values of a layer's cell, and of all layers together.
  int64_t n_cell_numbers(int layer) const {
    return heads_of(layer).n_embd_kv() * (latent.n > 0 ? 1 : 2);
  }
  int64_t n_cell_numbers() const;
  // Whether layers look at the cells of others, which have to be on the same device.
  bool must_stay_together() const { return first_sharing_cells.has_value(); }
};

// What every architecture has in common. Throws Error on missing or senseless
// values. `layout` and the kind of norms are what metadata does not say.
ModelConfig read_config(const GgufMetadata& metadata, RopeLayout layout,
                        NormKind norm_kind = NormKind::kRms);

// Whether layers with a window have heads, rotation and MLPs of their own; or heads have latent numbers.
enum class LayerKinds { kAlike, kWindowedDiffer, kLatent };
// The same for a family that has mixtures, too. They all say how many experts there are and how large
// these are, which is as large as the MLP of a model without where they do not; how tokens use them is
// the family's.
ModelConfig read_mixture_config(const GgufMetadata& metadata, RopeLayout layout,
                                NormKind norm_kind = NormKind::kRms,
                                LayerKinds kinds = LayerKinds::kAlike);

// Which layers have a sliding window: as the file says, by a flag for each or as all but every n-th, or
// as all but every `period`-th.
std::vector<bool> read_window_pattern(const ConfigReader& reader, int n_layers, int period);
// The base of their rotation, where the file names one.
float read_window_freq_base(const ConfigReader& reader, float otherwise);

}  // namespace forerun
