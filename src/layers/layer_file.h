// A set of layers as a file, which is what a search found, for later runs; and what all our JSON files
// have in common.
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
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/fingerprint.h"
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

struct JsonFileKind {
  const char* version_field;  // "forerun_layers"
  int version;                // that this forerun reads
  const char* what;           // "set of layers", in the singular
  const char* command;        // that makes such a file
};

// Reads a file and has `parse` make sense of it. Throws Error: {kNotFound}, {kIo}, {kUnsupported} of
// another version, {kInvalidFile} no JSON, not of this kind or damaged: something is missing or of
// another type, for which nlohmann's accessors throw, or makes no sense, for which expect() does.
void load_json(const JsonFileKind& kind, const std::filesystem::path& path,
               const std::function<void(const nlohmann::ordered_json&)>& parse);
void expect(bool makes_sense);
[[noreturn]] void fail_other_model(const JsonFileKind& kind, const std::filesystem::path& path);

uint64_t parse_fingerprint(const nlohmann::ordered_json& json);

// The list of the blocks that are left out.
nlohmann::ordered_json skipped_json(const LayerSet& layers);
LayerSet parse_skipped(const nlohmann::ordered_json& json, int n_layers);

nlohmann::ordered_json origin_json(const LayerOrigin& found);
LayerOrigin parse_origin(const nlohmann::ordered_json& json);

}  // namespace forerun
