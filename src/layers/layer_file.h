// A set of layers as a file: what a search found, for later runs.
//
// JSON, for people to read too:
//
//   {"forerun_layers": 1, "model": "3f0c...", "n_layers": 30, "skipped": [5, 12, 13],
//    "found": {"method": "neighbour", "objective": "expected", "speedup": 1.32,
//              "texts": 16, "tokens": 1024, "candidates": 412, "best_so_far": [0.71, 0.71, ...]}}
//
// `model` is the model's fingerprint: a set means nothing to another model. Blocks are
// numbered as in model/layer_set.h.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "model/layer_set.h"

namespace forerun {

// How a set was found (tune/layer_search.h).
struct LayerOrigin {
  std::string method;
  std::string objective;
  double speedup = 0;  // over plain decoding, as the objective has it
  int n_texts = 0;     // searched on
  int n_tokens = 0;    // of their answers
  int n_candidates = 0;
  std::vector<double> best_so_far = {};  // speedup after each candidate
};

// The model that a set is for.
struct LayerModel {
  uint64_t fingerprint = 0;
  int n_layers = 0;
};

struct LayerFile {
  uint64_t model = 0;  // fingerprint
  LayerSet layers = LayerSet::full(1);
  LayerOrigin found;

  // Replaces a file that is there only when all is written. Throws Error{kIo}.
  void save(const std::filesystem::path& path) const;
  // With `model`, for that one only. Throws Error: {kNotFound}, {kIo}, {kInvalidFile} not such
  // a file or damaged, {kUnsupported} of a newer version, {kInvalidArgument} for another model.
  static LayerFile load(const std::filesystem::path& path,
                        const std::optional<LayerModel>& model = std::nullopt);
};

}  // namespace forerun
