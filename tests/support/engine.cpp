#include "support/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"
#include "core/error.h"
#include "gguf/gguf_file.h"

namespace forerun::test {

std::shared_ptr<const Model> load_model(const std::filesystem::path& path, int n_threads) {
  return Model::load(GgufFile::open(path),
                     Device::open({.name = "cpu", .n_threads = n_threads, .pin_threads = false}));
}

std::shared_ptr<const Model> load_model_on_gpu(const std::filesystem::path& path) {
  for (const DeviceInfo& info : Device::list()) {
    if (info.name == "cpu") continue;
    auto device = Device::open({.name = info.name});
    if (device->gpu_kernels() == nullptr) continue;
    try {
      auto model = Model::load(GgufFile::open(path), std::move(device));
      const auto parts = model->parts();  // none where libllama computes it
      return !parts.empty() && parts.front().gpu != nullptr ? model : nullptr;
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kUnsupported) throw;
      return nullptr;  // a type that nobody multiplies there
    }
  }
  return nullptr;
}

std::unique_ptr<Executor> make_executor(std::shared_ptr<const Model> model, KvType type, int n_cells,
                                        int max_rows) {
  return std::make_unique<Executor>(
      std::move(model), ExecutorOptions{.kv = {.n_cells = n_cells, .type = type}, .max_rows = max_rows});
}

std::vector<float> read_and_commit(Executor& executor, SequenceId sequence,
                                   std::span<const TokenId> tokens,
                                   const std::optional<LayerSet>& layers) {
  Pass pass;
  pass.layers = layers;
  std::vector<NodeId> path;
  for (const TokenId token : tokens) {
    const auto parent = path.empty() ? std::nullopt : std::optional(path.back());
    path.push_back(executor.cells().extend(sequence, parent).value());
    pass.rows.push_back({.sequence = sequence, .node = path.back(), .token = token, .logits = true});
  }
  const PassResult& result = executor.forward(pass);
  std::vector<float> logits;
  for (size_t row = 0; row < tokens.size(); ++row) {
    logits.insert(logits.end(), result.logits(row).begin(), result.logits(row).end());
  }
  executor.cells().commit(sequence, path);
  return logits;
}

std::vector<TokenId> random_tokens(const Model& model, size_t n, uint32_t seed) {
  constexpr int kSmallest = 250;
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(n);
  const auto n_ids = static_cast<uint32_t>(std::min(kSmallest, model.config().n_vocab));
  for (TokenId& token : tokens) token = TokenId{static_cast<int32_t>(random() % n_ids)};
  return tokens;
}

LayerSet random_layer_set(int n_layers, std::mt19937& random) {
  LayerSet set = LayerSet::full(n_layers);
  for (int block = 0; block < set.n_blocks(); ++block) set.set(BlockId{block}, random() % 3 != 0);
  if (set.is_full()) set.set(BlockId{static_cast<int32_t>(random()) & 1}, false);
  return set;
}

double max_difference(std::span<const float> a, std::span<const float> b) {
  CHECK(a.size() == b.size());
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!(difference <= worst)) worst = difference;
    if (std::isnan(worst)) return std::numeric_limits<double>::infinity();
  }
  return worst;
}

}  // namespace forerun::test
