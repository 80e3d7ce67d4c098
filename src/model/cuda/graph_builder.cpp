#include "model/cuda/graph_builder.h"

#include <algorithm>

#include "model/cuda/best_logits.h"
#include "model/cuda/graph_tensors.h"

namespace forerun::cuda {
namespace {

// Whether `next` lies right behind `matrix`, so that one product serves both.
bool go_together(const Matrix& matrix, const Matrix& next) {
  return matrix.format == next.format && matrix.n_in == next.n_in &&
         matrix.data + matrix.n_bytes() == next.data;
}

class CudaProgram final : public PassProgram {
 public:
  CudaProgram(Stream& stream, const CudaOps& ops, ggml_cgraph* graph)
      : stream_(stream), steps_(ops.steps(graph)) {}

  void run() override {
    was_usual_ = captured_ != nullptr;
    if (!captured_ && ++n_runs_ < kRunsBeforeCapture) return run_uncaptured();
    if (!captured_) captured_ = stream_.capture([&] { launch(); });
    stream_.run(captured_);
  }
  // Kernels are loaded when they are first launched, which is not for graphs that are being captured.
  void prepare() override {
    run_uncaptured();
    captured_ = stream_.capture([&] { launch(); });
  }
  bool was_usual() const override { return was_usual_; }

 private:
  // Capturing takes as long as several passes: what is run once or twice, such as trials of layers, is
  // not worth it.
  static constexpr int kRunsBeforeCapture = 3;

  void run_uncaptured() const {
    stream_.use_device();
    launch();
    stream_.wait();
  }
  void launch() const {
    for (const CudaStep& step : steps_) step.launch(step.dst, stream_.get());
  }

  Stream& stream_;
  std::vector<CudaStep> steps_;
  CapturedGraph captured_;
  int n_runs_ = 0;
  bool was_usual_ = false;
};

}  // namespace

CudaGraphBuilder::CudaGraphBuilder(const GraphParts& parts, Stream& stream)
    : GraphBuilder(parts),
      stream_(stream),
      seen_(parts.config, n_rows_of(parts.inputs.states), parts.n_kv) {
  stream.use_device();  // that is the one for which products say how many parts they leave
}

std::unique_ptr<PassProgram> CudaGraphBuilder::finish() {
  return std::make_unique<CudaProgram>(stream_, ops_, parts().graph);
}

// --- states ---

Segment CudaGraphBuilder::Output::segment() const {
  return {.parts = parts_of(matrix, n_rows_of(product), floats_of(product)),
          .first = first,
          .n = n,
          .scale = floats_of(scale),
          .bias = bias == nullptr ? nullptr : floats_of(bias) + bias_first};
}

std::vector<ggml_tensor*> CudaGraphBuilder::States::sources() const {
  return added ? std::vector{base, added->product} : std::vector{base};
}

CudaGraphBuilder::States CudaGraphBuilder::states_of(ggml_tensor* tensor) const {
  const auto found = states_.find(tensor);
  return found == states_.end() ? States{.base = tensor, .added = std::nullopt} : found->second;
}

Operand CudaGraphBuilder::OperandPlace::in(ggml_tensor* node) const {
  return {.data = reinterpret_cast<__half*>(static_cast<std::byte*>(node->data) + start),
          .padded_rows = padded(n_rows_of(node)),
          .n_inputs = n_inputs};
}

ggml_tensor* CudaGraphBuilder::add_operand(const OperandPlace& place, int n_rows,
                                           std::vector<ggml_tensor*> sources, Launch launch) {
  const size_t n_bytes =
      place.start + static_cast<size_t>(operand_halves(n_rows, place.n_inputs)) * sizeof(__half);
  ggml_tensor* node = ops_.add(context(), {GGML_TYPE_I8, width_of(n_bytes, n_rows), n_rows},
                               std::move(sources), std::move(launch));
  operands_.emplace(node, place);
  return node;
}

// Where something is added the node has the sum first, then the operand.
ggml_tensor* CudaGraphBuilder::activations(const Norm& norm, ggml_tensor* tensor,
                                           const std::vector<Linear>& readers) {
  const States states = states_of(tensor);
  const int n_rows = n_rows_of(tensor);
  const RowsShape shape{.n_rows = n_rows, .n = config().n_embd};
  const size_t sum_bytes =
      states.added ? static_cast<size_t>(n_rows) * static_cast<size_t>(shape.n) * sizeof(float) : 0;
  const OperandPlace place{.start = GGML_PAD(sum_bytes, kAlignment), .n_inputs = n_inputs_for(readers)};
  const auto launch = [=, weight = norm.weight, eps = config().norm_eps](ggml_tensor* dst,
                                                                         cudaStream_t stream) {
    add_norm(floats_of(states.base), states.segment(), floats_of(weight), eps, shape, output_of(dst),
             place.in(dst), stream);
  };
  ggml_tensor* node = add_operand(place, n_rows, states.sources(), launch);
  if (states.added) states_[tensor] = {.base = node, .added = std::nullopt};
  return node;
}

ggml_tensor* CudaGraphBuilder::contribute(const Linear& linear, ggml_tensor* x, const Norm& post_norm,
                                          ggml_tensor* states) {
  const Output output = multiply({linear}, x).front();
  const States before = states_of(states);
  ggml_tensor* base = before.added ? copy_rows(states, nullptr) : before.base;
  if (post_norm.kind == NormKind::kNone) {
    states_[output.product] = {.base = base, .added = output};
    return output.product;
  }
  const RowsShape shape{.n_rows = n_rows_of(states), .n = config().n_embd};
  const auto launch = [=, weight = post_norm.weight, eps = config().norm_eps](ggml_tensor* dst,
                                                                              cudaStream_t stream) {
    norm_add(floats_of(base), output.segment(), floats_of(weight), eps, shape, output_of(dst), stream);
  };
  return ops_.add(context(), {GGML_TYPE_F32, shape.n, shape.n_rows}, {base, output.product}, launch);
}

ggml_tensor* CudaGraphBuilder::copy_rows(ggml_tensor* tensor, ggml_tensor* rows) {
  const States states = states_of(tensor);
  const int n_rows = rows == nullptr ? n_rows_of(tensor) : static_cast<int>(rows->ne[0]);
  const RowsShape shape{.n_rows = n_rows, .n = config().n_embd};
  std::vector<ggml_tensor*> sources = states.sources();
  if (rows != nullptr) sources.push_back(rows);
  const auto launch = [=](ggml_tensor* dst, cudaStream_t stream) {
    const auto* chosen = rows == nullptr ? nullptr : static_cast<const int32_t*>(rows->data);
    cuda::copy_rows(floats_of(states.base), states.segment(), chosen, shape, output_of(dst), stream);
  };
  return ops_.add(context(), {GGML_TYPE_F32, shape.n, n_rows}, std::move(sources), launch);
}

// --- products ---

std::vector<CudaGraphBuilder::Output> CudaGraphBuilder::multiply(const std::vector<Linear>& linears,
                                                                 ggml_tensor* operand) {
  const int n_rows = n_rows_of(operand);
  const OperandPlace place = operands_.at(operand);
  std::vector<Output> outputs;
  for (size_t i = 0; i < linears.size();) {
    Matrix matrix = matrix_of(linears[i]);
    const size_t first_output = outputs.size();
    for (int first = 0;;) {
      const Linear& linear = linears[i++];
      outputs.push_back({.product = nullptr,
                         .matrix = {},
                         .first = first,
                         .n = static_cast<int>(linear.gpu->n_out),
                         .scale = linear.scale,
                         .bias = linear.bias});
      if (i == linears.size() || !go_together(matrix, matrix_of(linears[i]))) break;
      first = static_cast<int>(matrix.n_out);
      matrix.n_out += matrix_of(linears[i]).n_out;
    }
    const auto launch = [=](ggml_tensor* dst, cudaStream_t stream) {
      cuda::multiply(matrix, place.in(operand), n_rows, output_of(dst), stream);
    };
    const int64_t width = int64_t{matrix.most_parts(n_rows)} * matrix.cut().n_outputs();
    ggml_tensor* product = ops_.add(context(), {GGML_TYPE_F32, width, n_rows}, {operand}, launch);
    for (size_t o = first_output; o < outputs.size(); ++o) {
      outputs[o].product = product;
      outputs[o].matrix = matrix;
    }
  }
  return outputs;
}

ggml_tensor* CudaGraphBuilder::gated(const MlpWeights& mlp, ggml_tensor* states) {
  return gated_of(mlp, activations(mlp.norm, states, {mlp.gate, mlp.up}));
}

ggml_tensor* CudaGraphBuilder::gated_of(const MlpWeights& mlp, ggml_tensor* x) {
  const std::vector<Output> outputs = multiply({mlp.gate, mlp.up}, x);
  const RowsShape shape{.n_rows = n_rows_of(x), .n = outputs[0].n};
  const OperandPlace place{.start = 0, .n_inputs = n_inputs_for({mlp.down})};
  const auto launch = [=, gate = gate()](ggml_tensor* dst, cudaStream_t stream) {
    cuda::gated(gate, outputs[0].segment(), outputs[1].segment(), shape, nullptr, place.in(dst), stream);
  };
  std::vector<ggml_tensor*> sources{outputs[0].product};
  if (outputs[1].product != outputs[0].product) sources.push_back(outputs[1].product);
  return add_operand(place, shape.n_rows, std::move(sources), launch);
}

Gate CudaGraphBuilder::gate() const {
  return config().activation == Activation::kGelu ? Gate::kGelu : Gate::kSilu;
}

ggml_tensor* CudaGraphBuilder::head(ggml_tensor* states) {
  const Linear& head = parts().weights.head;
  const Output output =
      multiply({head}, activations(parts().weights.output_norm, states, {head})).front();
  const int n_rows = n_rows_of(states);
  const auto launch = [=, cap = config().logit_softcap](ggml_tensor* dst, cudaStream_t stream) {
    cuda::finish(output.segment(), n_rows, cap, output_of(dst), stream);
  };
  return ops_.add(context(), {GGML_TYPE_F32, config().n_vocab, n_rows}, {output.product}, launch);
}

ggml_tensor* CudaGraphBuilder::best(ggml_tensor* logits) {
  const RowsShape shape{.n_rows = n_rows_of(logits), .n = config().n_vocab};
  constexpr int kNumbers = sizeof(LogitSums) / sizeof(float);
  ggml_tensor* sums =
      ops_.add(context(), {GGML_TYPE_F32, int64_t{kNumbers} * units_of(shape.n).n, shape.n_rows},
               {logits}, [=](ggml_tensor* dst, cudaStream_t stream) {
                 sum_units(floats_of(logits), shape, reinterpret_cast<LogitSums*>(dst->data), stream);
               });
  return ops_.add(context(), {GGML_TYPE_I8, sizeof(BestOfRow), shape.n_rows}, {logits, sums},
                  [=](ggml_tensor* dst, cudaStream_t stream) {
                    select_best(floats_of(logits), static_cast<const LogitSums*>(sums->data), shape,
                                static_cast<BestOfRow*>(dst->data), stream);
                  });
}

// --- attention ---

ggml_tensor* CudaGraphBuilder::rope_table(int layer) {
  ggml_tensor*& node = config().is_windowed(layer) ? window_rope_table_ : rope_table_;
  if (node != nullptr) return node;
  const RopeConfig& rope = config().rope_of(layer);
  const RopeStretch stretch = rope.stretch();
  const ggml_tensor* factors = parts().weights.rope_factors;
  const RopeTable table{.n_dims = rope.n_dims,
                        .freq_base = rope.freq_base,
                        .freq_scale = rope.freq_scale,
                        .ext_factor = rope.ext_factor,
                        .magnitude = stretch.magnitude,
                        .yarn_low = stretch.low_dim,
                        .yarn_high = stretch.high_dim,
                        .factors = nullptr};
  ggml_tensor* positions = parts().inputs.positions;
  const int n_rows = static_cast<int>(positions->ne[0]);
  node = ops_.add(context(), {GGML_TYPE_F32, rope.n_dims, n_rows}, {positions},
                  [=](ggml_tensor* dst, cudaStream_t stream) {
                    RopeTable with_factors = table;
                    with_factors.factors = floats_of(factors);
                    cuda::rope_table(with_factors, static_cast<const int32_t*>(positions->data), n_rows,
                                     reinterpret_cast<float2*>(dst->data), stream);
                  });
  return node;
}

ggml_tensor* CudaGraphBuilder::queries(int layer, ggml_tensor* states) {
  const AttentionWeights& weights = this->layer(layer).attention;
  const bool is_fused = weights.qkv.weight != nullptr;
  const std::vector<Linear> linears =
      is_fused ? std::vector{weights.qkv} : std::vector{weights.q, weights.k, weights.v};
  std::vector<Output> outputs = multiply(linears, activations(weights.norm, states, linears));
  if (is_fused) {  // one matrix, which may come with the biases of three
    const auto n_q = static_cast<int>(config().heads.n_embd_q()),
               n_kv = static_cast<int>(config().heads.n_embd_kv());
    const Output all = outputs.front();
    const auto part = [&](int first, int n, const ggml_tensor* bias) {
      Output output = all;
      output.first += first;
      output.n = n;
      output.bias_first = bias == nullptr ? first : 0;
      if (bias != nullptr) output.bias = bias;
      return output;
    };
    outputs = {part(0, n_q, weights.q.bias), part(n_q, n_kv, weights.k.bias),
               part(n_q + n_kv, n_kv, weights.v.bias)};
  }
  std::vector<ggml_tensor*> sources{rope_table(layer), parts().inputs.cells};
  for (const Output& output : outputs) {
    if (std::find(sources.begin(), sources.end(), output.product) == sources.end())
      sources.push_back(output.product);
  }
  const RopeConfig& rope = config().rope_of(layer);
  ggml_tensor *keys = parts().cache.keys(layer), *values = parts().cache.values(layer);
  HeadsWork work{.q = {},
                 .k = {},
                 .v = {},
                 .n_rows = n_rows_of(states),
                 .n_heads = config().heads.n,
                 .n_kv_heads = config().heads.n_kv,
                 .head_dim = config().heads.dim,
                 .q_norm = nullptr,
                 .k_norm = nullptr,
                 .eps = config().norm_eps,
                 .q_scale = config().query_scale,
                 .rotates_pairs = rope.layout == RopeLayout::kPairs,
                 .n_rope_dims = config().rotates(layer) ? rope.n_dims : 0,
                 .rope = nullptr,
                 .cells = nullptr,
                 .cache_type = keys->type,
                 .keys = nullptr,
                 .values = nullptr,
                 .cache_row_bytes = static_cast<int64_t>(keys->nb[1]),
                 .q_out = nullptr};
  ggml_tensor *table = rope_table(layer), *cells = parts().inputs.cells;
  const auto launch = [=, q_norm = weights.q_norm.weight, k_norm = weights.k_norm.weight](
                          ggml_tensor* dst, cudaStream_t stream) {
    HeadsWork placed = work;
    placed.q = outputs[0].segment();
    placed.k = outputs[1].segment();
    placed.v = outputs[2].segment();
    placed.q_norm = floats_of(q_norm);
    placed.k_norm = floats_of(k_norm);
    placed.rope = reinterpret_cast<const float2*>(table->data);
    placed.cells = static_cast<const int64_t*>(cells->data);
    placed.keys = static_cast<std::byte*>(keys->data);
    placed.values = static_cast<std::byte*>(values->data);
    placed.q_out = static_cast<__half*>(dst->data);
    heads(placed, stream);
  };
  const size_t row_bytes = static_cast<size_t>(config().heads.n_embd_q()) * sizeof(__half);
  return ops_.add(context(), {GGML_TYPE_I8, static_cast<int64_t>(row_bytes), work.n_rows},
                  std::move(sources), launch);
}

// What is known only when a pass is launched is where its inputs and partial results are.
std::function<AttentionWork(ggml_tensor* partials)> CudaGraphBuilder::attention_work(int layer) const {
  const ggml_tensor *keys = parts().cache.keys(layer), *values = parts().cache.values(layer);
  const bool is_windowed = config().is_windowed(layer);
  return [=, seen = seen_, inputs = parts().inputs.seen,
          n_tiles = parts().attention_tiles](ggml_tensor* partials) {
    const auto cache_rows = [](const ggml_tensor* cache) {
      return CacheRows{.data = static_cast<const std::byte*>(cache->data),
                       .row_bytes = static_cast<int64_t>(cache->nb[1])};
    };
    AttentionWork work = seen.work(static_cast<const std::byte*>(inputs->data), is_windowed);
    work.n_tiles = n_tiles;
    work.cache_type = keys->type;
    work.keys = cache_rows(keys);
    work.values = cache_rows(values);
    work.partials = output_of(partials);
    return work;
  };
}

ggml_tensor* CudaGraphBuilder::attend(int layer, ggml_tensor* queries) {
  const int n_rows = n_rows_of(queries);
  const auto work_of = attention_work(layer);
  ggml_tensor* partials =
      ops_.add(context(), {GGML_TYPE_F32, seen_.partial_floats() / n_rows + 1, n_rows},
               {queries, parts().inputs.seen}, [=](ggml_tensor* dst, cudaStream_t stream) {
                 AttentionWork work = work_of(dst);
                 work.q = static_cast<const __half*>(queries->data);
                 cuda::attend(work, stream);
               });
  const OperandPlace place{.start = 0, .n_inputs = n_inputs_for({this->layer(layer).attention.out})};
  return add_operand(
      place, n_rows, {partials, parts().inputs.seen},
      [=](ggml_tensor* dst, cudaStream_t stream) { merge(work_of(partials), place.in(dst), stream); });
}

}  // namespace forerun::cuda
