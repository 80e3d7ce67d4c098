#include "model/model_part.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/check.h"

namespace forerun {
namespace {

std::shared_ptr<Device> device_called(const std::shared_ptr<Device>& wanted, const std::string& name) {
  return name == wanted->info().name ? wanted : wanted->beside(name);
}

ModelPart empty_part(std::shared_ptr<Device> device, const ModelConfig& config) {
  return {.device = std::move(device), .blocks = LayerSet::none(config.n_layers)};
}

}  // namespace

std::optional<BlockId> block_of(std::string_view tensor, int n_layers) {
  constexpr std::string_view kPrefix = "blk.";
  if (!tensor.starts_with(kPrefix)) return std::nullopt;
  int layer = 0;
  const char* const all_end = tensor.data() + tensor.size();
  const auto [end, error] = std::from_chars(tensor.data() + kPrefix.size(), all_end, layer);
  if (error != std::errc() || layer < 0 || layer >= n_layers) return std::nullopt;
  constexpr std::array kMlpNames = {".ffn_", ".inp_gate.", ".proj.", ".post_norm.",
                                    ".layer_output_scale."};
  const std::string_view name(end, all_end);
  const bool is_mlp = std::ranges::any_of(kMlpNames, [&](const char* n) { return name.starts_with(n); });
  return is_mlp ? mlp_block(layer) : attention_block(layer);
}

bool ModelPart::needs(const GgufTensor& tensor) const {
  const auto block = block_of(tensor.name, blocks.n_layers());
  if (!block) return true;  // nobody asks for the head without having it
  if (blocks.runs(*block)) return true;
  // Blocks that are left out may be anybody's.
  if (tensor.name.ends_with(".layer_output_scale.weight")) return true;
  // The norm before an MLP has the name of one behind the attention in some files.
  const int layer = static_cast<int>(*block) / 2;
  return tensor.shape[1] == 1 && *block == attention_block(layer) && blocks.runs(mlp_block(layer));
}

std::vector<ModelPart> parts_of(const std::shared_ptr<Device>& device, const Placement& placement,
                                const ModelConfig& config) {
  std::vector<ModelPart> parts;
  if (!placement.is_spread()) {
    parts.push_back({.device = device, .blocks = LayerSet::full(config.n_layers), .has_head = true});
    return parts;
  }
  LayerSet on_cpu = LayerSet::first_blocks(config.n_layers, 2 * placement.n_on_cpu);
  int layer = placement.n_on_cpu;
  for (const Placement::Part& placed : placement.parts) {
    ModelPart part = empty_part(device_called(device, placed.device.name), config);
    const int end = layer + placed.n_layers;
    for (; layer < std::min(end, config.n_layers); ++layer) {
      part.blocks.set(attention_block(layer), true);
      (placement.keeps_on_cpu(config, layer) ? on_cpu : part.blocks).set(mlp_block(layer), true);
    }
    part.has_head = &placed == &placement.parts.back();
    parts.push_back(std::move(part));
  }
  CHECK(layer == config.n_layers);
  if (on_cpu.n_running() > 0) {
    ModelPart cpu = empty_part(device->is_host() ? device : device->beside("cpu"), config);
    cpu.blocks = on_cpu;
    parts.insert(parts.begin(), std::move(cpu));
  }
  return parts;
}

}  // namespace forerun
