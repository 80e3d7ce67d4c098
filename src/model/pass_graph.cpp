#include "model/pass_graph.h"

#include <algorithm>

#include "core/check.h"
#include "model/cpu/graph_builder.h"
#include "model/ggml_graph_builder.h"

namespace forerun {
namespace {

constexpr size_t kInputAlignment = 256;  // enough for every backend
constexpr int kMaxNodesPerBlock = 40;    // of any architecture, views included
constexpr int kMaxOtherNodes = 64;

size_t padded(size_t n_bytes) {
  return GGML_PAD(n_bytes, kInputAlignment);
}

int n_inputs_max() {
  return 7;
}

// The last that runs, or leaves cells; -1: none does.
int last_attention(const PassShape& shape) {
  int last = -1;
  for (int b = 0; b < shape.layers.n_blocks(); b += 2) {
    if (shape.layers.runs(BlockId{b}) || shape.leaving.runs(BlockId{b})) last = b;
  }
  return last;
}

// Whether rows whose states are wanted behind the last attention block go on apart from those
// whose logits are.
bool has_two_streams(const PassShape& shape) {
  return shape.n_hidden > 0 && !shape.hidden_at.empty() && shape.n_out < shape.n_rows &&
         shape.hidden_at.back() > last_attention(shape);
}

int max_nodes_of(const ModelConfig& config, const PassShape& shape) {
  // Blocks that are left out may leave something behind.
  const bool leaves_nothing = !config.has_layer_scales && !config.first_sharing_cells;
  int n_blocks = leaves_nothing ? shape.layers.n_running() : shape.layers.n_blocks();
  if (has_two_streams(shape)) {
    for (int b = last_attention(shape) + 1; b < shape.layers.n_blocks(); ++b) {
      n_blocks += shape.layers.runs(BlockId{b}) ? 1 : 0;
    }
  }
  return n_blocks * kMaxNodesPerBlock + kMaxOtherNodes + static_cast<int>(shape.hidden_at.size());
}

}  // namespace

PassInputMemory::PassInputMemory(const ModelPart& part, size_t n_bytes)
    : part_(&part),
      device_memory_(
          part.device->allocate_zeroed(n_bytes, "a pass over that context (a smaller one: -c)")) {
  const Device& device = *part.device;
  if (device.is_host()) {
    host_ = device_memory_.data();
  } else {
    staging_ = device.allocate_host(n_bytes, "the inputs of a pass");
    host_ = staging_.data();
  }
  context_.reset(
      ggml_init({.mem_size = 2 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  all_ = ggml_new_tensor_1d(context_.get(), GGML_TYPE_I8, static_cast<int64_t>(n_bytes));
  CHECK(ggml_backend_tensor_alloc(device_memory_.buffer(), all_, device_memory_.data()) ==
        GGML_STATUS_SUCCESS);
}

void PassInputMemory::upload(size_t n_bytes) {
  if (GpuKernels* gpu = part_->gpu) {
    gpu->upload(all_->data, {host_, n_bytes});
  } else if (!part_->device->is_host()) {
    part_->device->upload(all_, {host_, n_bytes});
  }
}

size_t PassGraph::n_state_bytes() const {
  return padded(ggml_nbytes(inputs_.states));
}

size_t PassGraph::max_input_bytes(const ModelConfig& config, const ModelPart& part, int n_rows,
                                  int n_kv) {
  const auto rows = static_cast<size_t>(n_rows);
  const size_t states = padded(rows * static_cast<size_t>(config.n_embd) * sizeof(float));
  const size_t mask = padded(rows * static_cast<size_t>(n_kv) * sizeof(ggml_fp16_t));
  size_t rest = static_cast<size_t>(n_inputs_max()) * padded(rows * sizeof(int64_t));
  if (config.n_embd_per_layer > 0) {
    const int64_t n = config.n_embd + int64_t{config.n_embd_per_layer} * config.n_layers;
    rest += padded(rows * static_cast<size_t>(n) * sizeof(float)) + kInputAlignment;
  }
  if (const GpuKernels* gpu = part.gpu) {
    return states + padded(gpu->seen_bytes(config, n_rows, n_kv)) + rest;
  }
  const size_t n_masks = part.device->kernels() != nullptr ? 0 : config.window > 0 ? 2 : 1;
  return states + n_masks * mask + rest;
}

PassGraph::PassGraph(const PassContext& pass, const PassShape& shape)
    : shape_(shape), hidden_at_(shape.hidden_at.begin(), shape.hidden_at.end()) {
  shape_.hidden_at = hidden_at_;
  const auto max_nodes = static_cast<size_t>(max_nodes_of(pass.model.config(), shape_));
  const size_t n_bytes =
      max_nodes * ggml_tensor_overhead() + ggml_graph_overhead_custom(max_nodes, false);
  context_.reset(ggml_init({.mem_size = n_bytes, .mem_buffer = nullptr, .no_alloc = true}));
  graph_ = ggml_new_graph_custom(context_.get(), max_nodes, false);
  place_inputs(pass);
  build(pass);
}

bool PassGraph::fits(const PassShape& shape, int most_kv) const {
  return shape.n_rows == shape_.n_rows && shape.n_kv <= shape_.n_kv && shape_.n_kv <= most_kv &&
         shape.attention_tiles == shape_.attention_tiles && shape.n_out == shape_.n_out &&
         shape.n_hidden == shape_.n_hidden && shape.has_head == shape_.has_head &&
         shape.leaving == shape_.leaving && shape.begin == shape_.begin && shape.end == shape_.end &&
         shape.layers == shape_.layers &&
         std::equal(shape.hidden_at.begin(), shape.hidden_at.end(), hidden_at_.begin(),
                    hidden_at_.end());
}

void PassGraph::place_inputs(const PassContext& pass) {
  const ModelConfig& config = pass.model.config();
  const PassInputMemory& memory = pass.memory;
  auto* base = static_cast<std::byte*>(ggml_backend_buffer_get_base(memory.buffer()));
  const auto place = [&](ggml_type type, int64_t n0, int64_t n1) {
    ggml_tensor* tensor = ggml_new_tensor_2d(context_.get(), type, n0, n1);
    CHECK(ggml_backend_tensor_alloc(memory.buffer(), tensor, base + n_input_bytes_) ==
          GGML_STATUS_SUCCESS);
    n_input_bytes_ += padded(ggml_nbytes(tensor));
    return tensor;
  };
  inputs_.states = place(GGML_TYPE_F32, config.n_embd, shape_.n_rows);
  if (shape_.n_kv > 0) {
    inputs_.positions = place(GGML_TYPE_I32, shape_.n_rows, 1);
    inputs_.cells = place(GGML_TYPE_I64, shape_.n_rows, 1);
    if (config.temperature_scale != 0.0f) {
      inputs_.temperatures = place(GGML_TYPE_F32, shape_.n_rows, 1);
    }
    const GpuKernels* gpu = pass.part.gpu;
    if (gpu != nullptr) {
      const size_t n_bytes = gpu->seen_bytes(config, shape_.n_rows, shape_.n_kv);
      inputs_.seen = place(GGML_TYPE_I8, static_cast<int64_t>(n_bytes), 1);
    }
    const bool has_masks = gpu == nullptr && pass.part.device->kernels() == nullptr;
    if (has_masks) inputs_.mask = place(GGML_TYPE_F16, shape_.n_kv, shape_.n_rows);
    if (has_masks && config.window > 0) {
      inputs_.window_mask = place(GGML_TYPE_F16, shape_.n_kv, shape_.n_rows);
    }
  }
  if (config.n_embd_per_layer > 0) {
    inputs_.embeddings = place(GGML_TYPE_F32, config.n_embd, shape_.n_rows);
    inputs_.per_layer =
        place(GGML_TYPE_F32, int64_t{config.n_embd_per_layer} * config.n_layers, shape_.n_rows);
  }
  if (shape_.n_out > 0 && shape_.n_out < shape_.n_rows) {
    inputs_.out_rows = place(GGML_TYPE_I32, shape_.n_out, 1);
  }
  if (shape_.n_hidden > 0 && shape_.n_hidden < shape_.n_rows) {
    inputs_.hidden_rows = place(GGML_TYPE_I32, shape_.n_hidden, 1);
  }
}

void PassGraph::build(const PassContext& pass) {
  const Model& model = pass.model;
  const GraphParts parts{.context = context_.get(),
                         .graph = graph_,
                         .device = *pass.part.device,
                         .config = model.config(),
                         .weights = pass.part.weights,
                         .cache = pass.cache,
                         .inputs = inputs_,
                         .n_kv = shape_.n_kv,
                         .attention_tiles = shape_.attention_tiles};
  std::unique_ptr<GraphBuilder> owned;
  if (GpuKernels* gpu = pass.part.gpu) {
    owned = gpu->make_builder(parts);
  } else if (pass.part.device->kernels() != nullptr) {
    owned = std::make_unique<CpuGraphBuilder>(parts, pass.visible);
  } else {
    owned = std::make_unique<GgmlGraphBuilder>(parts, pass.use_flash_attention);
  }
  GraphBuilder& builder = *owned;
  const auto select = [&](RowStream stream, ggml_tensor* rows) {
    if (rows == nullptr) return stream;
    stream.rows = rows;
    stream.states = builder.copy_rows(stream.states, rows);
    if (stream.entered != nullptr) stream.entered = builder.copy_rows(stream.entered, rows);
    return stream;
  };
  // A copy even where all rows are wanted, since the stream's own memory is reused.
  const auto keep_hidden = [&](int boundary, ggml_tensor* states, ggml_tensor* rows) {
    for (const int wanted : hidden_at_) {
      if (wanted != boundary || shape_.n_hidden == 0) continue;
      ggml_tensor* kept = builder.copy_rows(states, rows);
      ggml_set_output(kept);
      builder.expand(kept);
      hidden_.push_back(kept);
    }
  };
  const Architecture& architecture = model.architecture();
  // Keys and values of a layer that is left out, where others look at them.
  const auto leave_cells = [&](int layer, ggml_tensor* states) {
    if (shape_.leaving.runs(attention_block(layer))) builder.expand(builder.queries(layer, states));
  };
  const auto run = [&](int b, RowStream& stream) {
    const int layer = b / 2;
    const bool is_attention = b % 2 == 0;
    if (is_attention && model.config().has_parallel_blocks) stream.entered = stream.states;
    if (shape_.layers.runs(BlockId{b})) {
      stream.states = is_attention ? architecture.attention(builder, layer, stream.states)
                                   : architecture.mlp(builder, layer, stream);
    } else if (is_attention) {
      leave_cells(layer, stream.states);
    } else {
      stream.states = architecture.without_mlp(builder, layer, stream.states);
    }
  };

  // Behind the last attention block rows no longer look at each other, so only those go on
  // of which something is wanted, in a stream each: a row's logits are the same bits
  // whether or not states are wanted too, also on devices where bits depend on the number of
  // rows.
  const int last = last_attention(shape_);
  RowStream all{.states = inputs_.states};
  if (model.config().has_parallel_blocks) all.entered = all.states;  // a layer's MLP may be the first
  for (int b = 0; b < shape_.begin; b += 2) leave_cells(b / 2, all.states);
  for (int b = shape_.begin; b <= last; ++b) {
    keep_hidden(b, all.states, inputs_.hidden_rows);
    run(b, all);
  }
  const bool apart = has_two_streams(shape_);
  RowStream hidden = apart ? select(all, inputs_.hidden_rows) : RowStream{};
  if (shape_.n_out == 0) builder.expand(all.states);  // its keys and values are wanted at least
  RowStream wanted = shape_.n_out > 0 ? select(all, inputs_.out_rows) : RowStream{};
  const auto keep = [&](int boundary) {
    keep_hidden(boundary, apart ? hidden.states : wanted.states, apart ? nullptr : inputs_.hidden_rows);
  };
  for (int b = std::max(last + 1, shape_.begin); b < shape_.end; ++b) {
    keep(b);
    if (apart) run(b, hidden);
    if (wanted.states != nullptr) run(b, wanted);
  }
  keep(shape_.end);
  if (shape_.n_out > 0) {
    out_ = shape_.has_head ? builder.head(wanted.states) : builder.copy_rows(wanted.states, nullptr);
    if (shape_.has_head) best_ = builder.best(out_);
    for (ggml_tensor* result : {out_, best_}) {
      if (result == nullptr) continue;
      ggml_set_output(result);
      builder.expand(result);
    }
  }
  program_ = builder.finish();
}

}  // namespace forerun
