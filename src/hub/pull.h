// Pulls a model from a hub into the folder of models.
#pragma once

#include <filesystem>
#include <string>

#include "engine/hub_names.h"
#include "hub/download.h"
#include "hub/hub.h"

namespace forerun {

struct PullOptions {
  HubName name;
  std::string file;  // empty: the one that the name means
  DownloadProgress progress = [](const HubFile&, int64_t) {};
};

// The model's file, or the first of its parts, with all others beside it. Throws Error, and what the
// hub's on_wait throws.
std::filesystem::path pull_model(Hub& hub, const PullOptions& options);

}  // namespace forerun
