#include "support/spread_model.h"

#include <set>

#include "core/error.h"
#include "gguf/gguf_file.h"

namespace forerun::test {

Placement placement_on_cpu(const std::vector<int>& n_layers, int n_before, bool cpu_experts) {
  Placement placement;
  ggml_backend_dev_t cpu = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  for (const int n : n_layers)
    placement.parts.push_back({.device = {.raw = cpu, .name = "cpu"}, .n_layers = n});
  placement.n_on_cpu = n_before;
  placement.cpu_experts = cpu_experts;
  return placement;
}

std::shared_ptr<const Model> load_spread(const std::filesystem::path& path, const Placement& placement,
                                         int n_threads) {
  return Model::load(std::make_shared<const GgufFile>(GgufFile::open(path)),
                     Device::open({.name = "cpu", .n_threads = n_threads, .pin_threads = false}), {},
                     placement);
}

std::shared_ptr<const Model> load_beside_cpu(const std::filesystem::path& path,
                                             const std::shared_ptr<Device>& gpu) {
  const auto file = std::make_shared<const GgufFile>(GgufFile::open(path));
  const Architecture* architecture = architecture_of(*file);
  if (architecture == nullptr) return nullptr;
  const ModelConfig config = architecture->config(file->metadata());
  Placement placement;
  placement.parts = {
      {.device = {.raw = gpu->raw(), .name = gpu->info().name}, .n_layers = config.n_layers}};
  placement.n_on_cpu = 1;
  placement.cpu_experts = config.experts.n_all > 0;
  try {
    return Model::load(file, gpu, {}, std::move(placement));
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kUnsupported) throw;
    return nullptr;
  }
}

std::vector<Placement> some_placements(const ModelConfig& config) {
  const int n = config.n_layers;
  std::vector<Placement> placements;
  for (const int first : std::set{1, n / 2, n - 1})
    placements.push_back(placement_on_cpu({n - first + 1}, first));
  placements.push_back(placement_on_cpu({1}, n));
  placements.push_back(placement_on_cpu(std::vector<int>(static_cast<size_t>(n + 1), 1), 0));
  if (config.experts.n_all > 0) {
    placements.push_back(placement_on_cpu({n + 1}, 0, /*cpu_experts=*/true));
    placements.push_back(placement_on_cpu({n - 1, 1}, 1, /*cpu_experts=*/true));
  }
  return placements;
}

}  // namespace forerun::test
