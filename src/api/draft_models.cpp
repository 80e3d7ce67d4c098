#include "api/draft_models.h"

#include <fmt/format.h>

#include "core/error.h"
#include "engine/model_names.h"
#include "text/vocabulary_match.h"

namespace forerun {
namespace {

// A draft has tokens behind the text.
constexpr int kLongestDraft = 128;

uint64_t n_weight_bytes(const Model& model) {
  uint64_t n = 0;
  for (const GgufTensor& tensor : model.file().tensors()) n += tensor.n_bytes;
  return n;
}

}  // namespace

std::shared_ptr<const Model> DraftModels::load_weights(const std::string& path) {
  const auto known = loaded_.find(path);
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
  std::shared_ptr<const Model> model = Model::load(file, target.shared_device(), progress);
  if (n_weight_bytes(*model) > n_weight_bytes(target) && options_.warn) {
    options_.warn(fmt::format("{} is larger than the model it drafts for: drafts will be slow", path));
  }
  loaded_.emplace(path, model);
  return model;
}

std::shared_ptr<DraftModel> DraftModels::load(const std::string& name) {
  const std::string path = resolve_model(name).string();
  auto draft = std::make_shared<DraftModel>();
  draft->n_slots = options_.n_slots;
  draft->n_context = options_.n_context + kLongestDraft;
  try {
    draft->model = load_weights(path);
    draft->executor = std::make_unique<Executor>(
        draft->model,
        ExecutorOptions{.kv = {.n_cells = draft->n_slots * draft->n_context, .type = options_.kv_type}});
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kOutOfMemory) throw;
    fail(ErrorCode::kOutOfMemory, "no room for the draft model {}: {}", path, error.what());
  }
  draft->costs = [executor = draft->executor.get(), progress = options_.progress,
                  kept = std::make_shared<std::optional<Calibration>>()]() -> const Calibration& {
    if (*kept) return **kept;
    CalibrationOptions options;
    if (progress) {
      options.progress = [&](double share) { progress("measuring the draft model", share); };
    }
    return kept->emplace(calibrated(*executor, options));
  };
  return draft;
}

}  // namespace forerun
