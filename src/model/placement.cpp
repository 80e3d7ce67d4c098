#include "model/placement.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <llama.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <string_view>

#include "core/error.h"
#include "model/host_memory.h"
#include "model/layer_plan.h"
#include "model/llama/llama_model.h"
#include "model/model.h"
#include "model/model_part.h"

namespace forerun {
namespace {

constexpr int kUsualContext = 8192;
// Beside what passes certainly need on a device: the driver's, and ggml's for attention.
constexpr size_t kHeadroom = size_t{512} << 20;

constexpr std::array kExpertNames = {"ffn_up_exps", "ffn_down_exps", "ffn_gate_exps", "ffn_gate_up_exps",
                                     "_chexps"};

bool is_expert(std::string_view name) {
  return std::ranges::any_of(
      kExpertNames, [&](const char* part) { return name.find(part) != std::string_view::npos; });
}

PartSizes sizes_of(const GgufFile& file, const ModelConfig& config, const Placement& placement) {
  constexpr int kMostLayers = 1 << 16;
  if (config.n_layers < 0 || config.n_layers > kMostLayers) {
    fail(ErrorCode::kInvalidFile, "{} says that it has {} layers", file.path().string(),
         config.n_layers);
  }
  PartSizes sizes{.layers = std::vector<size_t>(static_cast<size_t>(config.n_layers))};
  for (const GgufTensor& tensor : file.tensors()) {
    const auto block = block_of(tensor.name, config.n_layers);
    const int layer = block ? static_cast<int>(*block) / 2 : 0;
    // Ours are whole blocks; of libllama's mixtures nothing is known but names.
    const bool is_mixture = block == mlp_block(layer) && placement.keeps_on_cpu(config, layer);
    if (!block && tensor.name.starts_with("blk.")) continue;        // nobody loads it
    if (tensor.name.starts_with("per_layer_token_embd")) continue;  // read a row at a time
    if (is_mixture || (placement.cpu_experts && is_expert(tensor.name))) {
      sizes.stays += tensor.n_bytes;
    } else if (block) {
      sizes.layers[static_cast<size_t>(layer)] += tensor.n_bytes;
    } else if (tensor.name.starts_with("output")) {
      sizes.head += tensor.n_bytes;
    } else {
      sizes.stays += tensor.n_bytes;
    }
  }
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  if (embedding != nullptr && file.find_tensor("output.weight") == nullptr) {
    sizes.head += embedding->n_bytes;  // tied, and needed at both ends
  }
  return sizes;
}

void add_needs(PartSizes& sizes, const ModelConfig& config, const GgufFile& file, KvType kv_type,
               const TextNeeds& needs) {
  const ggml_type type = ggml_type_of(kv_type);
  const int64_t n_numbers = std::max<int64_t>(0, config.n_cell_numbers() / std::max(1, config.n_layers));
  const size_t of_cell = ggml_row_size(type, GGML_PAD(n_numbers, ggml_blck_size(type)));
  const int n_context = needs.n_context > 0 ? needs.n_context : usual_context(config);
  const int64_t n_cells = needs.n_cells > 0 ? needs.n_cells : int64_t{n_context} * needs.n_parallel;
  sizes.cache = of_cell * static_cast<size_t>(n_cells);
  sizes.least_cache = of_cell * static_cast<size_t>(n_context);
  const GgufTensor* embedding = file.find_tensor("token_embd.weight");
  const int64_t n_vocab = embedding != nullptr ? embedding->shape[1] : 0;
  const int64_t row =
      n_vocab + std::max<int64_t>(0, 8 * int64_t{config.n_embd} + 4 * int64_t{config.n_ff});
  sizes.passes = kHeadroom + static_cast<size_t>(needs.max_rows * row) * sizeof(float);
}

std::string names_of(const std::vector<NamedDevice>& devices) {
  std::vector<std::string> names;
  for (const NamedDevice& device : devices) names.push_back(device.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

void check_for(const PlacementOptions& options, const std::vector<NamedDevice>& devices) {
  if (options.n_gpu_layers.value_or(0) > 0 && devices.empty()) {
    fail(ErrorCode::kInvalidArgument,
         "--gpu-layers {}: there is no GPU to compute on here, and no RPC server is named (--rpc)",
         *options.n_gpu_layers);
  }
  if (!options.split.empty() && options.split.size() != devices.size()) {
    fail(ErrorCode::kInvalidArgument, "--split has {} shares, and layers go to {}{}{}",
         options.split.size(), devices.size(),
         devices.size() == 1 ? " device: " : " devices: ", names_of(devices));
  }
  if (devices.size() > llama_max_devices()) {
    fail(ErrorCode::kInvalidArgument, "layers can go to {} devices, not to {}", llama_max_devices(),
         devices.size());
  }
}

struct Wanted {
  const GgufFile& file;
  const Device& device;
  const PlacementOptions& options;
  const TextNeeds& needs;
};

// What may get layers beside the CPU.
struct Candidates {
  std::vector<NamedDevice> devices;
  std::shared_ptr<const RpcServers> servers;  // of the last of them; nullptr: none
};

// `config`: as who computes it reads it.
Placement place(const Wanted& wanted, const Candidates& candidates, const ModelConfig& config) {
  const auto& [devices, servers] = candidates;
  const bool has_experts =
      std::ranges::any_of(wanted.file.tensors(), [](const GgufTensor& t) { return is_expert(t.name); });
  Placement placement;
  placement.cpu_experts = wanted.options.cpu_experts && has_experts && !devices.empty();
  PartSizes sizes = sizes_of(wanted.file, config, placement);
  add_needs(sizes, config, wanted.file, wanted.device.kv_type(), wanted.needs);
  std::vector<size_t> free_bytes;
  for (const NamedDevice& d : devices) free_bytes.push_back(n_free_bytes(d.raw));
  if (servers) servers->check();
  const LayerPlan plan = plan_layers(sizes,
                                     {.n_gpu_layers = wanted.options.n_gpu_layers,
                                      .split = wanted.options.split,
                                      .prefers_first = wanted.options.rpc.empty()},
                                     free_bytes, available_host_memory());

  placement.from_file = plan.exceeds_memory;
  placement.n_on_cpu = plan.n_on_cpu;
  for (size_t i = 0; i < devices.size(); ++i) {
    if (plan.on_device[i] == 0) continue;
    placement.parts.push_back({.device = devices[i], .n_layers = plan.on_device[i]});
    const bool is_server = servers && i + servers->devices().size() >= devices.size();
    if (is_server) placement.servers = servers;
  }
  if (placement.parts.empty()) {
    placement.leaves_device = !wanted.device.is_host();
    return placement;
  }
  const bool is_whole = placement.parts.size() == 1 && plan.n_on_cpu == 0 && !placement.cpu_experts;
  if (is_whole && placement.parts[0].device.raw == wanted.device.raw()) {
    return {};  // its embeddings are read from the file a row at a time
  }
  return placement;
}

std::string range_text(int first, int n) {
  return n == 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, first + n - 1);
}

}  // namespace

int usual_context(const ModelConfig& config) {
  return std::min(config.n_ctx_train, kUsualContext);
}

std::span<const char* const> expert_names() {
  return kExpertNames;
}

void check_placement(const PlacementOptions& options) {
  if (options.n_gpu_layers && *options.n_gpu_layers < 0) {
    fail(ErrorCode::kInvalidArgument, "--gpu-layers takes auto or a number from 0, not {}",
         *options.n_gpu_layers);
  }
  const auto is_share = [](double share) { return std::isfinite(share) && share >= 0; };
  const double sum = std::reduce(options.split.begin(), options.split.end());
  if (!std::ranges::all_of(options.split, is_share) || (!options.split.empty() && !(sum > 0))) {
    fail(ErrorCode::kInvalidArgument, "--split takes shares from 0, one of them greater");
  }
  for (const std::string& endpoint : options.rpc) {
    check_rpc_endpoint(endpoint);
    if (std::ranges::count(options.rpc, endpoint) > 1) {
      fail(ErrorCode::kInvalidArgument, "--rpc names {} twice", endpoint);
    }
  }
}

std::string Placement::where() const {
  if (!is_spread()) return "";
  std::string text;
  int next = 0;
  const auto add = [&](int n, const std::string& device, bool has_head) {
    std::string what;
    if (n > 0) what = (next == 0 ? "layers " : "") + range_text(next, n);
    if (has_head) what += n > 0 ? " and the head" : "the head";
    text += fmt::format("{}{} on {}", text.empty() ? "" : ", ", what, device);
    next += n;
  };
  if (n_on_cpu > 0) add(n_on_cpu, "cpu", false);
  for (size_t i = 0; i < parts.size(); ++i) {
    const bool is_last = i + 1 == parts.size();
    add(parts[i].n_layers - (is_last ? 1 : 0), parts[i].device.name, is_last);
  }
  if (cpu_experts) text += ", experts on cpu";
  return text;
}

Placement place_model(const GgufFile& file, const Device& device, const PlacementOptions& options,
                      const TextNeeds& needs) {
  check_placement(options);
  Candidates candidates{.devices = device.gpus(), .servers = nullptr};
  if (!options.rpc.empty()) {
    candidates.servers = std::make_shared<const RpcServers>(options.rpc);
    const auto& theirs = candidates.servers->devices();
    candidates.devices.insert(candidates.devices.end(), theirs.begin(), theirs.end());
  }
  check_for(options, candidates.devices);
  const auto plan = [&](const ModelConfig& config) {
    return place({.file = file, .device = device, .options = options, .needs = needs}, candidates,
                 config);
  };
  const Architecture* ours = architecture_of(file);
  if (ours != nullptr) {
    const ModelConfig config = ours->config(file.metadata());
    Placement placement = plan(config);
    if (!placement.needs_libllama() && placement.suits(config)) return placement;
  }
  Placement placement = plan(read_llama_config(file.metadata()));
  placement.by_libllama = ours != nullptr;
  return placement;
}

}  // namespace forerun
