// Domains of prompts, each with the layers that suit it to draft with, as a file.
//
// JSON:
//
//   {"forerun_domains": 1, "model": "3f0c...", "n_layers": 30, "n_embd": 576,
//    "vector": "mean", "least_cosine": 0.89,
//    "domains": [{"name": "qa", "skipped": [5, 12, 13], "found": {...},
//                 "anchors": [[0.1, ...], ...]}, ...]}
//
// `model` is the model's fingerprint: states and sets mean nothing to another model. Blocks are
// numbered as in model/layer_set.h; `found` is as in layers/layer_file.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "layers/layer_file.h"
#include "model/layer_set.h"
#include "model/model.h"
#include "request/prompt_state.h"

namespace forerun {

// What stands for a prompt: the mean of its rows' states, or the last row's. KNN-SSD's paper
// says the last, its code the mean.
enum class PromptVector { kMean, kLast };
std::string_view to_string(PromptVector kind);
std::optional<PromptVector> parse_prompt_vector(std::string_view name);

// Empty while the state is of no rows.
std::span<const float> vector_of(const PromptState& state, PromptVector kind);

struct Domain {
  std::string name;
  // Nothing left out: drafting does not pay there.
  LayerSet layers = LayerSet::full(1);
  LayerOrigin found = {};
  // Unit vectors, one after another: what prompts of this domain look like.
  std::vector<float> anchors = {};
};

struct DomainFile {
  uint64_t model = 0;  // fingerprint
  int n_layers = 0;
  int n_embd = 0;
  PromptVector vector = PromptVector::kMean;
  // A prompt whose nearest anchor is not as near as this belongs to no domain.
  double least_cosine = -1;
  std::vector<Domain> domains = {};  // at least one, of different names

  // Per domain: the cosine of the angle between the prompt's vector and the nearest of its
  // anchors. The prompt has rows.
  std::vector<double> cosines(const PromptState& prompt) const;

  // As a LayerFile's; with `model`, for that one only.
  void save(const std::filesystem::path& path) const;
  static DomainFile load(const std::filesystem::path& path, const Model* model = nullptr);
};

}  // namespace forerun
