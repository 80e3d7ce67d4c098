#include "engine/loaded_model.h"

#include <future>

#include "core/cpu_topology.h"
#include "core/error.h"

namespace forerun {

namespace {

std::shared_ptr<const Model> load_weights(const std::shared_ptr<const GgufFile>& file,
                                          const ModelLoadOptions& options,
                                          const std::function<void(double)>& progress) {
  std::shared_ptr<Device> device = Device::open(options.device);
  Placement placement = place_model(*file, *device, options.placement, options.needs);
  if (placement.leaves_device) device = device->beside("cpu");
  return Model::load(file, std::move(device), progress, std::move(placement));
}

}  // namespace

LoadedModel load_model(const std::filesystem::path& path, const DeviceOptions& device,
                       const std::function<void(double)>& progress) {
  return load_model(path, ModelLoadOptions{.device = device}, progress);
}

LoadedModel load_model(const std::filesystem::path& path, const ModelLoadOptions& options,
                       const std::function<void(double)>& progress) {
  const auto file = std::make_shared<const GgufFile>(GgufFile::open(path));
  architecture_of(*file);  // before anything is loaded: the likeliest thing to be wrong

  // The thread holds the file too: if the weights fail to load, it still reads from it.
  auto vocabulary = std::async(std::launch::async, [file] {
    unpin_current_thread();
    return Vocabulary::load(file->metadata());
  });
  std::shared_ptr<const Model> model = load_weights(file, options, progress);
  LoadedModel loaded{.model = model,
                     .vocabulary = vocabulary.get(),
                     .chat_template = ChatTemplate::from(model->file().metadata())};
  if (loaded.vocabulary.n_tokens() != static_cast<size_t>(model->config().n_vocab)) {
    fail(ErrorCode::kInvalidFile, "{} has {} tokens in its vocabulary but {} rows in its embedding",
         path.string(), loaded.vocabulary.n_tokens(), model->config().n_vocab);
  }
  return loaded;
}

std::vector<TokenId> prompt_for(const LoadedModel& loaded, const std::string& text) {
  if (!loaded.chat_template) return loaded.vocabulary.tokenize(text);
  const ChatMessage message{.role = "user", .content = text};
  return loaded.vocabulary.tokenize_rendered(
      loaded.chat_template->render({&message, 1}, /*add_generation_prompt=*/true));
}

}  // namespace forerun
