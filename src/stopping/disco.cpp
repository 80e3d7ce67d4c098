#include "stopping/disco.h"

#include <ggml-cpp.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "core/file_version.h"
#include "core/fingerprint.h"
#include "core/replace_file.h"
#include "gguf/gguf_file.h"

namespace forerun {
namespace {

constexpr int kVersion = 1;
constexpr auto kVersionKey = "forerun.disco.version";
constexpr auto kTargetKey = "forerun.disco.target";
constexpr auto kDraftKey = "forerun.disco.draft";
constexpr auto kThresholdKey = "forerun.disco.threshold";
constexpr auto kMaxTokensKey = "forerun.disco.max_tokens";
constexpr auto kExamplesKey = "forerun.disco.examples";

constexpr size_t kMostHidden = 4096;
constexpr int kLongestDraft = 127;

[[noreturn]] void fail_damaged(const std::filesystem::path& path) {
  fail(ErrorCode::kInvalidFile, "{} is damaged: make the classifier again with 'forerun disco train'",
       path.string());
}

GgufFile open(const std::filesystem::path& path) {
  try {
    return GgufFile::open(path);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kInvalidFile) fail_damaged(path);
    throw;
  }
}

// The numbers of a tensor, `n` of them if that is known.
std::vector<float> numbers(const GgufFile& file, const char* name, size_t n = 0) {
  const GgufTensor* tensor = file.find_tensor(name);
  if (tensor == nullptr || tensor->type != GGML_TYPE_F32) fail_damaged(file.path());
  std::vector<float> values(tensor->n_bytes / sizeof(float));
  if (values.empty() || (n != 0 && values.size() != n)) fail_damaged(file.path());
  std::memcpy(values.data(), tensor->data, values.size() * sizeof(float));
  if (!std::ranges::all_of(values, [](float x) { return std::isfinite(x); })) fail_damaged(file.path());
  return values;
}

void check_models(const GgufFile& file, const ModelPair& models) {
  const auto target = file.metadata().get_string(kTargetKey);
  const auto draft = file.metadata().get_string(kDraftKey);
  if (!target || !draft) fail_damaged(file.path());
  const auto other = [&](const char* which) {
    fail(ErrorCode::kInvalidArgument,
         "{} was trained with another {}: train one for these two with 'forerun disco train'",
         file.path().string(), which);
  };
  if (*target != fingerprint_text(models.target)) other("model");
  if (*draft != fingerprint_text(models.draft)) {
    other(models.draft == models.target ? "drafter, a model of its own" : "draft model");
  }
}

}  // namespace

DiscoFeatures DiscoView::features(const DraftedToken& token) {
  DiscoFeatures features{};
  token.logits.top(kDiscoProbabilities, scratch_, likeliest_);
  for (size_t i = 0; i < likeliest_.size(); ++i) {
    features[i] = static_cast<float>(token.sums.probability(likeliest_[i].logit));
  }
  features[kDiscoProbabilities] = static_cast<float>(token.sums.entropy);
  features[kDiscoProbabilities + 1] = std::log1p(static_cast<float>(token.n_answer));
  return features;
}

double DiscoNetwork::chance(const DiscoFeatures& raw) const {
  DiscoFeatures x;
  for (size_t i = 0; i < kDiscoFeatures; ++i) x[i] = (raw[i] - mean[i]) * scale[i];
  float sum = output_bias;
  for (size_t unit = 0; unit < n_hidden(); ++unit) {
    const float* weight = hidden_weight.data() + unit * kDiscoFeatures;
    float value = hidden_bias[unit];
    for (size_t i = 0; i < kDiscoFeatures; ++i) value += weight[i] * x[i];
    sum += output_weight[unit] * std::max(value, 0.0f);
  }
  return 1 / (1 + std::exp(-static_cast<double>(sum)));
}

void DiscoClassifier::save(const std::filesystem::path& path) const {
  const gguf_context_ptr gguf(gguf_init_empty());
  gguf_set_val_str(gguf.get(), "general.type", "classifier");
  gguf_set_val_i32(gguf.get(), kVersionKey, kVersion);
  gguf_set_val_str(gguf.get(), kTargetKey, fingerprint_text(models.target).c_str());
  gguf_set_val_str(gguf.get(), kDraftKey, fingerprint_text(models.draft).c_str());
  gguf_set_val_f32(gguf.get(), kThresholdKey, static_cast<float>(rule.threshold));
  gguf_set_val_i32(gguf.get(), kMaxTokensKey, rule.max_tokens);
  gguf_set_val_i64(gguf.get(), kExamplesKey, n_examples);
  const auto n_hidden = static_cast<int64_t>(network.n_hidden());
  const auto n_features = static_cast<int64_t>(kDiscoFeatures);
  struct Tensor {
    const char* name;
    std::span<const float> values;
    std::vector<int64_t> shape;
  };
  const Tensor tensors[] = {{"mean", network.mean, {n_features}},
                            {"scale", network.scale, {n_features}},
                            {"hidden.weight", network.hidden_weight, {n_features, n_hidden}},
                            {"hidden.bias", network.hidden_bias, {n_hidden}},
                            {"output.weight", network.output_weight, {n_hidden}},
                            {"output.bias", {&network.output_bias, 1}, {1}}};
  constexpr size_t kMemory = 16384;  // of what describes tensors
  const ggml_context_ptr context(
      ggml_init({.mem_size = kMemory, .mem_buffer = nullptr, .no_alloc = true}));
  for (const auto& [name, values, shape] : tensors) {
    ggml_tensor* tensor =
        ggml_new_tensor(context.get(), GGML_TYPE_F32, static_cast<int>(shape.size()), shape.data());
    ggml_set_name(tensor, name);
    gguf_add_tensor(gguf.get(), tensor);
  }
  std::vector<std::byte> bytes(gguf_get_meta_size(gguf.get()));
  gguf_get_meta_data(gguf.get(), bytes.data());
  const size_t alignment = gguf_get_alignment(gguf.get());
  for (const Tensor& tensor : tensors) {
    const auto values = std::as_bytes(tensor.values);
    bytes.insert(bytes.end(), values.begin(), values.end());
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
  }
  replace_file(path, bytes);
}

DiscoClassifier DiscoClassifier::load(const std::filesystem::path& path, const ModelPair& models) {
  const GgufFile file = open(path);
  const auto version = file.metadata().get_int(kVersionKey);
  if (!version) {
    fail(ErrorCode::kInvalidFile, "{} is no classifier: 'forerun disco train' makes one", path.string());
  }
  check_file_version(path, *version, kVersion);
  check_models(file, models);
  const auto threshold = file.metadata().get_float(kThresholdKey);
  const auto max_tokens = file.metadata().get_int(kMaxTokensKey);
  const bool has_rule = threshold && max_tokens && *threshold >= 0 && *threshold <= 1 &&
                        *max_tokens >= 1 && *max_tokens <= kLongestDraft;
  if (!has_rule) fail_damaged(path);
  DiscoClassifier classifier{
      .models = models,
      .rule = {.threshold = *threshold, .max_tokens = static_cast<int>(*max_tokens)},
      .n_examples = file.metadata().get_int(kExamplesKey).value_or(0),
      .network = {}};
  DiscoNetwork& network = classifier.network;
  std::ranges::copy(numbers(file, "mean", kDiscoFeatures), network.mean.begin());
  std::ranges::copy(numbers(file, "scale", kDiscoFeatures), network.scale.begin());
  network.hidden_bias = numbers(file, "hidden.bias");
  if (network.n_hidden() > kMostHidden) fail_damaged(path);
  network.hidden_weight = numbers(file, "hidden.weight", network.n_hidden() * kDiscoFeatures);
  network.output_weight = numbers(file, "output.weight", network.n_hidden());
  network.output_bias = numbers(file, "output.bias", 1).front();
  return classifier;
}

}  // namespace forerun
