// DISCO (Mamou et al., 2024): drafts go on while a classifier, a network of two layers, holds the
// drafted token for likely to be taken, up to a length. Both numbers are the classifier's own, found on
// validation prompts.
//
// A classifier as a file is a GGUF that is bound to the two models it was trained on: to others its
// features mean something else. `forerun disco train` makes one.
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

#include <array>
#include <cstdint>
#include <filesystem>
#include <vector>

#include "sampling/vocab_ops.h"
#include "stopping/stopping_rule.h"

namespace forerun {

// What the classifier sees of a drafted token: the ten largest probabilities of the draft's
// distribution, from the largest on (0 where the vocabulary has fewer), the entropy of all of it in
// nats, and log(1 + n) of the n tokens of the answer before this one.
constexpr size_t kDiscoProbabilities = 10;
constexpr size_t kDiscoFeatures = kDiscoProbabilities + 2;
using DiscoFeatures = std::array<float, kDiscoFeatures>;

// Not thread-safe: keeps its memory.
class DiscoView {
 public:
  DiscoFeatures features(const DraftedToken& token);

 private:
  SelectionScratch scratch_;
  std::vector<ScoredToken> likeliest_;
};

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
  // The chance that the token is taken, by the rule that it was trained for. Takes less than a
  // microsecond.
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

class DiscoStopping final : public StoppingRule {
 public:
  explicit DiscoStopping(DiscoClassifier classifier) : classifier_(std::move(classifier)) {}

  bool goes_on(const DraftedToken& token) override {
    return token.depth < classifier_.rule.max_tokens &&
           classifier_.network.chance(view_.features(token)) >= classifier_.rule.threshold;
  }
  std::optional<int> longest() const override { return classifier_.rule.max_tokens; }
  // Other numbers from now on.
  void set_rule(const DiscoRule& rule) { classifier_.rule = rule; }

 private:
  DiscoClassifier classifier_;
  DiscoView view_;
};

}  // namespace forerun
