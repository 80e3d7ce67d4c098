// The models that draft for an engine's model: each is loaded once, whoever drafts with it.
//
// They compute on the engine's own device, one after the other with its model.
//
// Not thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "draft/draft_model.h"
#include "engine/loaded_model.h"

namespace forerun {

class DraftModels {
 public:
  struct Options {
    const LoadedModel& target;  // outlives it
    KvType kv_type;
    int n_slots;                                                        // requests at once
    int n_context;                                                      // of each
    std::function<void(std::string_view what, double share)> progress;  // may be empty
    std::function<void(std::string_view)> warn;                         // may be empty
  };
  explicit DraftModels(Options options) : options_(std::move(options)) {}

  // By path or name, with a cache of its own. Throws Error: no such model, one that is the target
  // itself, another vocabulary, no memory.
  std::shared_ptr<DraftModel> load(const std::string& name);

 private:
  std::shared_ptr<const Model> load_weights(const std::string& path);

  Options options_;
  std::map<std::string, std::shared_ptr<const Model>> loaded_;  // by path
};

}  // namespace forerun
