#include "tune/disco/training.h"

#include <ggml-backend.h>
#include <ggml-cpp.h>
#include <ggml-cpu.h>
#include <ggml-opt.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <random>
#include <vector>

#include "core/check.h"
#include "core/error.h"

namespace forerun {
namespace {

constexpr int64_t kBatch = 128;
constexpr size_t kFewest = 32;
// A chance of a token, and that of its opposite.
constexpr int64_t kClasses = 2;
constexpr float kWeightDecay = 1e-4f;

struct FreeDataset {
  void operator()(ggml_opt_dataset_t dataset) const { ggml_opt_dataset_free(dataset); }
};
struct FreeOptimiser {
  void operator()(ggml_opt_context_t context) const { ggml_opt_free(context); }
};
using DatasetPtr = std::unique_ptr<ggml_opt_dataset, FreeDataset>;
using OptimiserPtr = std::unique_ptr<ggml_opt_context, FreeOptimiser>;

// How features are brought to a mean of 0 and a deviation of 1.
void normalise(std::span<const DiscoExample> examples, DiscoNetwork& network) {
  for (size_t f = 0; f < kDiscoFeatures; ++f) {
    double sum = 0, squares = 0;
    for (const DiscoExample& example : examples) {
      const auto x = static_cast<double>(example.features[f]);
      sum += x;
      squares += x * x;
    }
    const auto n = static_cast<double>(examples.size());
    const double mean = sum / n;
    const double variance = std::max(0.0, squares / n - mean * mean);
    network.mean[f] = static_cast<float>(mean);
    // What is always the same says nothing.
    network.scale[f] = variance > 1e-12 ? static_cast<float>(1 / std::sqrt(variance)) : 0.0f;
  }
}

DatasetPtr dataset_of(std::span<const DiscoExample> examples, const DiscoNetwork& network,
                      std::mt19937_64& random) {
  // Whole batches: some examples come twice.
  const auto n = static_cast<int64_t>(examples.size());
  const int64_t n_all = (n + kBatch - 1) / kBatch * kBatch;
  DatasetPtr dataset(
      ggml_opt_dataset_init(GGML_TYPE_F32, GGML_TYPE_F32, kDiscoFeatures, kClasses, n_all, 1));
  float* data = ggml_get_data_f32(ggml_opt_dataset_data(dataset.get()));
  float* labels = ggml_get_data_f32(ggml_opt_dataset_labels(dataset.get()));
  for (int64_t i = 0; i < n_all; ++i) {
    const auto from = i < n ? static_cast<size_t>(i) : random() % examples.size();
    const DiscoExample& example = examples[from];
    for (size_t f = 0; f < kDiscoFeatures; ++f) {
      *data++ = (example.features[f] - network.mean[f]) * network.scale[f];
    }
    *labels++ = 1 - example.taken;
    *labels++ = example.taken;
  }
  return dataset;
}

// The network as ggml trains it. It has an output for each class: their difference is what
// the logistic function is of.
class Trainee {
 public:
  Trainee(int64_t n_hidden, std::mt19937_64& random)
      : backend_(ggml_backend_init_by_type(GGML_BACKEND_DEVICE_TYPE_CPU, nullptr)),
        parameters_(ggml_init({.mem_size = kContext, .mem_buffer = nullptr, .no_alloc = true})),
        computed_(ggml_init({.mem_size = kGraphContext, .mem_buffer = nullptr, .no_alloc = true})) {
    CHECK(backend_ != nullptr);
    ggml_backend_cpu_set_n_threads(backend_.get(), 1);  // waiting for others takes longer
    ggml_context* p = parameters_.get();
    inputs_ = ggml_new_tensor_2d(p, GGML_TYPE_F32, kDiscoFeatures, kBatch);
    hidden_weight_ = ggml_new_tensor_2d(p, GGML_TYPE_F32, kDiscoFeatures, n_hidden);
    hidden_bias_ = ggml_new_tensor_1d(p, GGML_TYPE_F32, n_hidden);
    output_weight_ = ggml_new_tensor_2d(p, GGML_TYPE_F32, n_hidden, kClasses);
    output_bias_ = ggml_new_tensor_1d(p, GGML_TYPE_F32, kClasses);
    ggml_set_input(inputs_);
    for (ggml_tensor* tensor : {hidden_weight_, hidden_bias_, output_weight_, output_bias_}) {
      ggml_set_param(tensor);
    }
    buffer_.reset(ggml_backend_alloc_ctx_tensors(p, backend_.get()));
    if (buffer_ == nullptr) fail(ErrorCode::kOutOfMemory, "no memory to train in");
    randomise(hidden_weight_, random);
    randomise(output_weight_, random);
    set(hidden_bias_, std::vector<float>(static_cast<size_t>(n_hidden), 0.0f));
    set(output_bias_, std::vector<float>(kClasses, 0.0f));

    ggml_context* c = computed_.get();
    ggml_tensor* hidden =
        ggml_relu(c, ggml_add(c, ggml_mul_mat(c, hidden_weight_, inputs_), hidden_bias_));
    outputs_ = ggml_add(c, ggml_mul_mat(c, output_weight_, hidden), output_bias_);
    ggml_set_output(outputs_);
    ggml_backend_t backend = backend_.get();
    scheduler_.reset(ggml_backend_sched_new(&backend, nullptr, 1, GGML_DEFAULT_GRAPH_SIZE, false, true));
    ggml_opt_params params = ggml_opt_default_params(scheduler_.get(), GGML_OPT_LOSS_TYPE_CROSS_ENTROPY);
    params.ctx_compute = c;
    params.inputs = inputs_;
    params.outputs = outputs_;
    params.get_opt_pars = ggml_opt_get_constant_optimizer_params;
    params.get_opt_pars_ud = &optimiser_;
    optimiser_ = ggml_opt_get_default_optimizer_params(nullptr);
    optimiser_.adamw.wd = kWeightDecay;
    context_.reset(ggml_opt_init(params));
  }

  void train(ggml_opt_dataset_t dataset, double learning_rate) {
    optimiser_.adamw.alpha = static_cast<float>(learning_rate);
    ggml_opt_dataset_shuffle(context_.get(), dataset, -1);
    ggml_opt_epoch(context_.get(), dataset, nullptr, nullptr, ggml_opt_dataset_ndata(dataset), nullptr,
                   nullptr);
  }

  // What it is now.
  void store(DiscoNetwork& network) const {
    network.hidden_weight = get(hidden_weight_);
    network.hidden_bias = get(hidden_bias_);
    const std::vector<float> weights = get(output_weight_);
    const std::vector<float> biases = get(output_bias_);
    const size_t n = network.n_hidden();
    network.output_weight.resize(n);
    for (size_t i = 0; i < n; ++i) network.output_weight[i] = weights[n + i] - weights[i];
    network.output_bias = biases[1] - biases[0];
  }

 private:
  static constexpr size_t kContext = 8192;
  static constexpr size_t kGraphContext = 1 << 22;  // forward, backward and the optimiser's step

  static void set(ggml_tensor* tensor, const std::vector<float>& values) {
    ggml_backend_tensor_set(tensor, values.data(), 0, values.size() * sizeof(float));
  }
  static std::vector<float> get(const ggml_tensor* tensor) {
    std::vector<float> values(static_cast<size_t>(ggml_nelements(tensor)));
    ggml_backend_tensor_get(tensor, values.data(), 0, values.size() * sizeof(float));
    return values;
  }
  // He et al., 2015: for what a ReLU follows.
  static void randomise(ggml_tensor* tensor, std::mt19937_64& random) {
    std::normal_distribution<float> normal(0, std::sqrt(2.0f / static_cast<float>(tensor->ne[0])));
    std::vector<float> values(static_cast<size_t>(ggml_nelements(tensor)));
    for (float& value : values) value = normal(random);
    set(tensor, values);
  }

  ggml_backend_ptr backend_;
  ggml_context_ptr parameters_;
  ggml_context_ptr computed_;
  ggml_backend_buffer_ptr buffer_;
  ggml_backend_sched_ptr scheduler_;
  ggml_tensor *inputs_, *hidden_weight_, *hidden_bias_, *output_weight_, *output_bias_, *outputs_;
  ggml_opt_optimizer_params optimiser_{};
  OptimiserPtr context_;
};

}  // namespace

double cross_entropy(const DiscoNetwork& network, std::span<const DiscoExample> examples) {
  CHECK(!examples.empty());
  double sum = 0;
  for (const DiscoExample& example : examples) {
    const double chance = std::clamp(network.chance(example.features), 1e-7, 1 - 1e-7);
    const auto taken = static_cast<double>(example.taken);
    sum -= taken * std::log(chance) + (1 - taken) * std::log(1 - chance);
  }
  return sum / static_cast<double>(examples.size());
}

DiscoNetwork train_disco(std::span<const DiscoExample> examples, std::span<const DiscoExample> held_out,
                         const DiscoTrainingOptions& options) {
  if (examples.size() < kFewest || held_out.empty()) {
    fail(ErrorCode::kInvalidArgument,
         "{} drafted tokens, {} of them held out, are too few to learn from: give more prompts, or more "
         "tokens of each (--tokens)",
         examples.size() + held_out.size(), held_out.size());
  }
  DiscoNetwork network;
  normalise(examples, network);
  std::mt19937_64 random(options.seed);
  const DatasetPtr dataset = dataset_of(examples, network, random);
  Trainee trainee(options.n_hidden, random);
  DiscoNetwork best;
  double least = std::numeric_limits<double>::infinity();
  for (int epoch = 0; epoch < options.n_epochs; ++epoch) {
    const double share = static_cast<double>(epoch) / options.n_epochs;
    trainee.train(dataset.get(), options.learning_rate * 0.5 * (1 + std::cos(std::numbers::pi * share)));
    trainee.store(network);
    const double loss = cross_entropy(network, held_out);
    if (loss < least) {
      least = loss;
      best = network;
    }
    if (options.progress) options.progress((epoch + 1.0) / options.n_epochs, loss);
  }
  if (best.n_hidden() == 0) {
    fail(ErrorCode::kInvalidArgument, "what the models say are no numbers: there is nothing to learn");
  }
  return best;
}

}  // namespace forerun
