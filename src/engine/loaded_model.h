// Everything of a model file that generating text needs: weights on a device,
// vocabulary, chat template.
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/device.h"
#include "model/model.h"
#include "model/placement.h"
#include "text/chat_template.h"
#include "text/vocabulary.h"

namespace forerun {

// Const after loading; shared by whoever generates with it, from the thread that loaded
// it (model/device.h).
struct LoadedModel {
  std::shared_ptr<const Model> model;
  Vocabulary vocabulary;
  std::optional<ChatTemplate> chat_template;  // nullopt: the model has none
};

// What a user says, as the model is asked it: through its chat template, or as it is where it
// has none. Throws Error.
std::vector<TokenId> prompt_for(const LoadedModel& loaded, const std::string& text);

struct ModelLoadOptions {
  DeviceOptions device = {};
  PlacementOptions placement = {};
  TextNeeds needs = {};
};

// Loads weights and vocabulary at the same time. `progress` gets the share of
// weights loaded, at most every tenth of a second; may be empty. Throws Error.
LoadedModel load_model(const std::filesystem::path& path, const ModelLoadOptions& options,
                       const std::function<void(double)>& progress = {});
LoadedModel load_model(const std::filesystem::path& path, const DeviceOptions& device,
                       const std::function<void(double)>& progress = {});

}  // namespace forerun
