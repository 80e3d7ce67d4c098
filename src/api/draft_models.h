// The models that draft for an engine's model: each is loaded once, whoever drafts with it.
//
// They compute on the engine's own device or on another, one after the other with its model.
//
// Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "draft/model/draft_model.h"
#include "engine/loaded_model.h"

namespace forerun {

class DraftModels {
 public:
  struct Options {
    const LoadedModel& target;  // outlives it
    DeviceOptions device;       // of the engine: other devices have its threads and type of cache
    int n_slots;                // requests at once
    int n_context;              // of each
    std::function<void(std::string_view what, double share)> progress;  // may be empty
    std::function<void(std::string_view)> warn;                         // may be empty
  };
  explicit DraftModels(Options options) : options_(std::move(options)) {}

  // With a cache of its own. Throws Error: no such model or device, a model that is the target
  // itself, another vocabulary, no memory.
  std::shared_ptr<DraftModel> load(const DraftModelChoice& choice);

 private:
  std::shared_ptr<Device> device_named(const std::string& name);
  std::shared_ptr<const Model> load_weights(const std::string& path,
                                            const std::shared_ptr<Device>& device);

  Options options_;
  std::map<std::string, std::shared_ptr<Device>> devices_;                          // others, by name
  std::map<std::pair<std::string, Device*>, std::shared_ptr<const Model>> loaded_;  // by path
};

}  // namespace forerun
