// What JSON files about layers have in common: a version, the model they are for, sets of
// blocks and how these were found.
//
// Parsers throw nlohmann::json::exception for what is missing or of another type and return
// nullopt for what makes no sense; both are damage.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "core/fingerprint.h"
#include "layers/layer_file.h"
#include "model/layer_set.h"

namespace forerun {

struct JsonFileKind {
  const char* version_field;  // "forerun_layers"
  int version;                // that this forerun reads
  const char* what;           // "set of layers", in the singular
  const char* command;        // that makes such a file
};

// {kNotFound}, {kIo}, {kInvalidFile} no JSON or not of this kind, {kUnsupported} of another
// version.
nlohmann::ordered_json load_json(const JsonFileKind& kind, const std::filesystem::path& path);
[[noreturn]] void fail_damaged(const JsonFileKind& kind, const std::filesystem::path& path);
[[noreturn]] void fail_other_model(const JsonFileKind& kind, const std::filesystem::path& path);

std::optional<uint64_t> parse_fingerprint(const nlohmann::ordered_json& json);

// The list of the blocks that are left out.
nlohmann::ordered_json skipped_json(const LayerSet& layers);
std::optional<LayerSet> parse_skipped(const nlohmann::ordered_json& json, int n_layers);

nlohmann::ordered_json origin_json(const LayerOrigin& found);
std::optional<LayerOrigin> parse_origin(const nlohmann::ordered_json& json);

}  // namespace forerun
