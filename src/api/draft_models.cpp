#include "api/draft_models.h"

#include <fmt/format.h>

#include "core/error.h"
#include "cost/known_costs.h"
#include "engine/model_names.h"
#include "plan/planner.h"
#include "text/vocabulary_match.h"

namespace forerun {
namespace {

uint64_t n_weight_bytes(const Model& model) {
  uint64_t n = 0;
  for (const GgufTensor& tensor : model.file().tensors()) n += tensor.n_bytes;
  return n;
}

}  // namespace

std::shared_ptr<Device> DraftModels::device_named(const std::string& name) {
  const Model& model = *options_.target.model;
  const std::shared_ptr<Device>& target = model.shared_device();
  const auto of_target = [&](const std::string& wanted) -> std::shared_ptr<Device> {
    if (wanted == target->info().name) return target;
    for (const ModelPart& part : model.parts()) {
      if (wanted == part.device->info().name) return part.device;
    }
    return nullptr;
  };
  if (name == "same") return target;
  if (auto device = of_target(name)) return device;
  const auto known = devices_.find(name);
  if (known != devices_.end()) return known->second;
  DeviceOptions options = options_.device;
  options.name = name;
  std::shared_ptr<Device> opened = Device::open(options);
  // A device has several names.
  if (auto device = of_target(opened->info().name)) opened = std::move(device);
  return devices_.emplace(name, std::move(opened)).first->second;
}

std::shared_ptr<const Model> DraftModels::load_weights(const std::string& path,
                                                       const std::shared_ptr<Device>& device) {
  const auto known = loaded_.find({path, device.get()});
  if (known != loaded_.end()) return known->second;
  const Model& target = *options_.target.model;
  const auto file = std::make_shared<const GgufFile>(GgufFile::open(path));
  architecture_of(*file);
  if (model_fingerprint(*file) == target.fingerprint()) {
    fail(ErrorCode::kInvalidArgument,
         "{} is the model itself: give a smaller one to draft with, or let it draft for itself (--spec "
         "knapspec)",
         path);
  }
  const auto difference =
      vocabulary_difference(options_.target.vocabulary, Vocabulary::load(file->metadata()));
  if (difference) {
    fail(ErrorCode::kInvalidArgument, "{} cannot draft for this model: {}", path, *difference);
  }
  std::function<void(double)> progress;
  if (options_.progress) {
    progress = [this](double share) { options_.progress("loading the draft model", share); };
  }
  std::shared_ptr<const Model> model = Model::load(file, device, progress);
  if (n_weight_bytes(*model) > n_weight_bytes(target) && options_.warn) {
    options_.warn(fmt::format("{} is larger than the model it drafts for: drafts will be slow", path));
  }
  loaded_.emplace(std::pair(path, device.get()), model);
  return model;
}

std::shared_ptr<DraftModel> DraftModels::load(const DraftModelChoice& choice) {
  std::string path;
  std::shared_ptr<Device> device;
  try {
    path = resolve_model(choice.model).string();
    device = device_named(choice.device);
  } catch (const Error& error) {
    fail(error.code(), "the draft model (--draft-model, --draft-device): {}", error.what());
  }
  auto draft = std::make_shared<DraftModel>();
  draft->n_slots = options_.n_slots;
  draft->n_context = options_.n_context + kLargestTree;  // a draft behind the text
  try {
    draft->model = load_weights(path, device);
    draft->executor = std::make_unique<Executor>(
        draft->model, ExecutorOptions{.kv = {.n_cells = draft->n_slots * draft->n_context,
                                             .type = options_.device.kv_type}});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    fail(ErrorCode::kOutOfMemory, "no room for the draft model {}: {}", path, error.what());
  }
  draft->costs = std::make_unique<PassCosts>(known_costs(*draft->executor));
  return draft;
}

}  // namespace forerun
