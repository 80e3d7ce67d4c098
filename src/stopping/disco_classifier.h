// DISCO's classifier: a network of two layers that says how likely a drafted token is taken.
//
// As a file it is a GGUF that is bound to the two models it was trained on: to others its features
// mean something else. `forerun disco train` makes one.
//
//   forerun.disco.version     1
//   forerun.disco.target      fingerprint of the model that verifies, 16 hex digits
//   forerun.disco.draft       of the one that drafts; the same where the model drafts for itself
//   forerun.disco.threshold   a draft ends behind a token that is less likely taken
//   forerun.disco.max_tokens  of a draft
//   forerun.disco.examples    that it was trained on
//   mean, scale               [12] of each feature: the network sees (x - mean) * scale
//   hidden.weight, .bias      [12, n], [n]; then ReLU
//   output.weight, .bias      [n], [1]; then the logistic function
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "stopping/disco_features.h"

namespace forerun {

// Which two models work together: their fingerprints.
struct ModelPair {
  uint64_t target = 0;
  uint64_t draft = 0;  // the same where the model drafts for itself

  bool operator==(const ModelPair&) const = default;
};

struct DiscoNetwork {
  DiscoFeatures mean{};
  DiscoFeatures scale{};
  std::vector<float> hidden_weight;  // of unit i: kDiscoFeatures from i * kDiscoFeatures on
  std::vector<float> hidden_bias;
  std::vector<float> output_weight;
  float output_bias = 0;

  size_t n_hidden() const { return hidden_bias.size(); }
  // The chance that the token is taken. Takes less than a microsecond.
  double chance(const DiscoFeatures& features) const;
};

// When a draft ends.
struct DiscoRule {
  double threshold = 0.5;
  int max_tokens = 16;
};

struct DiscoClassifier {
  ModelPair models;
  DiscoRule rule;
  int64_t n_examples = 0;
  DiscoNetwork network;

  // Replaces a file that is there only when all is written. Throws Error{kIo}.
  void save(const std::filesystem::path& path) const;
  // For these models only. Throws Error: {kNotFound}, {kIo}, {kInvalidFile} not such a file or
  // damaged, {kUnsupported} of a newer version, {kInvalidArgument} for other models.
  static DiscoClassifier load(const std::filesystem::path& path, const ModelPair& models);
};

}  // namespace forerun
