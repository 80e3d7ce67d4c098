#include "model/own_passes.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/check.h"
#include "core/error.h"
#include "gguf/ggml_log.h"

namespace forerun {
namespace {

constexpr size_t kMaxCachedGraphs = 96;
constexpr int kMinSpan = 1024;
// How many times as long as they need to be lists of cells may be.
constexpr int kSpareSpan = 4;
// Passes of up to so many rows are prepared before the first request.
constexpr int kPreparedRows = 64;
// Logits of more rows than this at once grow the buffer when first asked for.
constexpr int kReservedLogitRows = 32;

// Rows that take less to embed than threads to wake.
constexpr size_t kEmbeddedAlone = 48;

constexpr ggml_fp16_t kVisible = 0x0000;  // 0
constexpr ggml_fp16_t kHidden = 0xFC00;   // minus infinity

// Whether the device's flash attention takes this model's heads and this cache.
bool flash_attention_works(const Model& model, const KvCache& cache) {
  ggml_context_ptr context(
      ggml_init({.mem_size = 16 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  const ModelConfig& config = model.config();
  const auto heads = [&](ggml_type type, int64_t n_rows, int64_t n_heads) {
    return ggml_new_tensor_3d(context.get(), type, config.head_dim, n_rows, n_heads);
  };
  const ggml_type type = cache.keys(0)->type;
  ggml_tensor* k = heads(type, kKvGranularity, config.n_kv_heads);
  ggml_tensor* v = heads(type, kKvGranularity, config.n_kv_heads);
  ggml_tensor* mask = ggml_new_tensor_2d(context.get(), GGML_TYPE_F16, kKvGranularity, 1);
  ggml_tensor* operation =
      ggml_flash_attn_ext(context.get(), heads(GGML_TYPE_F32, 1, config.n_heads), k, v, mask,
                          config.attention_scale, 0.0f, config.attention_softcap);
  if (config.has_sinks)
    ggml_flash_attn_ext_add_sinks(operation,
                                  ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, config.n_heads));
  return model.device().supports(operation);
}

}  // namespace

OwnPasses::OwnPasses(std::shared_ptr<const Model> model, const ExecutorOptions& options)
    : model_(std::move(model)),
      max_rows_(options.max_rows),
      min_rows_(options.min_rows),
      cache_(model_->config(), model_->device(), options.kv),
      input_memory_(*model_,
                    PassGraph::max_input_bytes(*model_, options.max_rows, cache_.cells().n_cells())),
      context_{.model = *model_,
               .cache = cache_,
               .memory = input_memory_,
               .visible = visible_,
               .use_flash_attention = flash_attention_works(*model_, cache_)},
      allocator_(ggml_gallocr_new(model_->device().default_buffer_type())),
      device_logits_(model_->device()) {
  CHECK(min_rows_ > 0 && max_rows_ >= min_rows_);
  const GpuKernels* gpu = model_->gpu_kernels();
  if (gpu != nullptr && !gpu->serves(model_->config(), options.kv.type)) {
    fail(ErrorCode::kUnsupported,
         "the model was loaded for our kernels on GPUs, which do not read its caches of type {}",
         to_string(options.kv.type));
  }
  graphs_.reserve(kMaxCachedGraphs + 1);
  reserve();
  prepare();
}

void OwnPasses::reserve() {
  const GpuKernels* gpu = model_->gpu_kernels();
  const PassShape largest{
      .n_rows = max_rows_,
      .n_kv = cache_.cells().n_cells(),
      .attention_tiles = gpu != nullptr ? gpu->attention_tiles(model_->config(), visible_) : 0,
      .n_logits = std::min(max_rows_, kReservedLogitRows),
      .n_hidden = 0,
      .layers = LayerSet::full(model_->config().n_layers),
      .hidden_at = {}};
  PassGraph graph(context_, largest);
  allocate(graph);
}

// Passes of answers and their drafts, on GPUs, where the first of a shape would take several times as
// long as others. From the largest on, which makes room for the rest.
void OwnPasses::prepare() {
  const GpuKernels* gpu = model_->gpu_kernels();
  if (gpu == nullptr) return;
  for (int n_rows = kPreparedRows; n_rows >= 1; n_rows /= 2) {
    if (n_rows > max_rows_ || n_rows != gpu->filled_up(n_rows)) continue;
    graph_for({.n_rows = n_rows,
               .n_kv = kSpareSpan * kMinSpan,
               .attention_tiles = gpu->attention_tiles(model_->config(), visible_),
               .n_logits = n_rows,
               .n_hidden = 0,
               .layers = LayerSet::full(model_->config().n_layers),
               .hidden_at = {}})
        .prepare();
  }
}

void OwnPasses::allocate(PassGraph& graph) {
  GgmlLogCapture log;
  const size_t before = ggml_gallocr_get_buffer_size(allocator_.get(), 0);
  if (!ggml_gallocr_reserve(allocator_.get(), graph.graph())) {
    graphs_.clear();
    fail(ErrorCode::kOutOfMemory,
         "not enough memory on {} to compute a pass: {} (a smaller context: -c)",
         model_->device().info().name, log.first_error());
  }
  // A buffer that had to grow is a new one: older graphs point into the old.
  if (ggml_gallocr_get_buffer_size(allocator_.get(), 0) != before) graphs_.clear();
  CHECK(ggml_gallocr_alloc_graph(allocator_.get(), graph.graph()));
}

// How many cells attention looks at when so many are in use. Our own kernels look at what
// rows see and no further, so that one graph serves them for long; and what is to give the
// same bits for one row and for many must not change its span often.
int OwnPasses::kv_span(int n_used) const {
  int span = (n_used + kKvGranularity - 1) / kKvGranularity * kKvGranularity;
  if (has_own_kernels() || min_rows_ > 1) {
    span = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(span, kMinSpan))));
  }
  return std::min(span, cache_.cells().n_cells());
}

// How many cells the lists of a pass may have: one graph serves for long.
int OwnPasses::listed_span() const {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(visible_.n_listed(), kMinSpan))));
}

PassShape OwnPasses::shape_of(const Pass& pass) const {
  PassShape shape{.n_rows = static_cast<int>(pass.rows.size()),
                  .layers = pass.layers.value_or(LayerSet::full(model_->config().n_layers)),
                  .hidden_at = pass.hidden_at};
  CHECK(shape.n_rows >= 1 && shape.n_rows <= max_rows_);
  CHECK(shape.layers.n_layers() == model_->config().n_layers);
  CHECK(std::is_sorted(pass.hidden_at.begin(), pass.hidden_at.end()));
  CHECK(pass.hidden_at.empty() ||
        (pass.hidden_at.front() >= 0 && pass.hidden_at.back() <= shape.layers.n_blocks()));
  for (const Row& row : pass.rows) {
    shape.n_logits += row.logits ? 1 : 0;
    shape.n_hidden += row.hidden && !pass.hidden_at.empty() ? 1 : 0;
  }
  for (int layer = 0; layer < shape.layers.n_layers() && shape.n_kv == 0; ++layer) {
    if (!shape.layers.runs(attention_block(layer))) continue;
    const GpuKernels* gpu = model_->gpu_kernels();
    shape.n_kv = gpu != nullptr ? listed_span() : kv_span(cache_.cells().n_used_span());
    if (gpu != nullptr) shape.attention_tiles = gpu->attention_tiles(model_->config(), visible_);
  }
  return shape;
}

// On GPUs our kernels do not mind lists that could be longer, and a graph takes as long to prepare as
// several passes.
PassGraph& OwnPasses::graph_for(const PassShape& shape) {
  const int most_kv = model_->gpu_kernels() != nullptr ? kSpareSpan * shape.n_kv : shape.n_kv;
  for (CachedGraph& cached : graphs_) {
    if (!cached.graph->fits(shape, most_kv)) continue;
    cached.last_used = n_passes_;
    return *cached.graph;
  }
  const size_t n_input_bytes = PassGraph::max_input_bytes(*model_, shape.n_rows, shape.n_kv);
  if (n_input_bytes > input_memory_.size()) {
    graphs_.clear();  // they point into it
    input_memory_ = PassInputMemory(*model_, n_input_bytes);
  }
  auto graph = std::make_unique<PassGraph>(context_, shape);
  allocate(*graph);
  ++n_graphs_built_;
  if (graphs_.size() >= kMaxCachedGraphs) {
    graphs_.erase(std::min_element(
        graphs_.begin(), graphs_.end(),
        [](const CachedGraph& a, const CachedGraph& b) { return a.last_used < b.last_used; }));
  }
  graphs_.push_back({.graph = std::move(graph), .last_used = n_passes_});
  return *graphs_.back().graph;
}

int OwnPasses::n_computed(int n_rows) const {
  const GpuKernels* gpu = model_->gpu_kernels();
  const int n_filled = gpu == nullptr ? min_rows_ : std::min(gpu->filled_up(n_rows), max_rows_);
  return std::max(n_rows, n_filled);
}

// The pass with as many rows as are computed. Those that fill it up repeat the last: they store the same
// in the same cell.
const Pass& OwnPasses::filled_up(const Pass& pass) {
  const GpuKernels* gpu = model_->gpu_kernels();
  const auto min_rows = static_cast<size_t>(n_computed(static_cast<int>(pass.rows.size())));
  if (pass.rows.empty() || pass.rows.size() >= min_rows) return pass;
  filled_pass_ = pass;
  std::vector<Row>& rows = filled_pass_.rows;
  rows.resize(min_rows, rows.back());
  const auto n_logits = static_cast<int>(std::ranges::count_if(pass.rows, &Row::logits));
  for (size_t r = pass.rows.size(); r < min_rows; ++r) rows[r].hidden = false;
  if (gpu != nullptr) {
    // Few numbers of logits too, so that few graphs serve.
    const size_t n_asking = pass.rows.size() + static_cast<size_t>(gpu->filled_up(n_logits) - n_logits);
    for (size_t r = pass.rows.size(); r < min_rows; ++r) rows[r].logits = r < n_asking;
  } else {
    // The head's product must not depend on how many rows ask for it either.
    for (Row& row : rows) row.logits = n_logits > 0;
  }
  if (pass.states.empty()) return filled_pass_;
  const auto last = pass.states.last(static_cast<size_t>(model_->config().n_embd));
  filled_states_.assign(pass.states.begin(), pass.states.end());
  for (size_t r = pass.rows.size(); r < min_rows; ++r) {
    filled_states_.insert(filled_states_.end(), last.begin(), last.end());
  }
  filled_pass_.states = filled_states_;
  return filled_pass_;
}

void OwnPasses::run(const Pass& wanted, PassResult& result) {
  ++n_passes_;
  const Pass& pass = filled_up(wanted);
  if (has_own_kernels()) visible_.fill(cache_.cells(), pass.rows, model_->config().window);
  PassGraph& graph = graph_for(shape_of(pass));
  fill_inputs(pass, graph);
  input_memory_.upload(*model_, graph.n_input_bytes());
  graph.run();
  was_usual_ = graph.was_usual();
  collect(pass, graph, wanted.rows.size(), result);
}

void OwnPasses::save(SequenceId sequence, std::span<const TokenId> tokens,
                     const std::filesystem::path& path) const {
  cache_.save(sequence, tokens, model_->fingerprint(), path);
}

std::optional<KvCache::Restored> OwnPasses::restore(const std::filesystem::path& path) {
  return cache_.restore(path, model_->fingerprint());
}

void OwnPasses::fill_inputs(const Pass& pass, const PassGraph& graph) {
  const PassInputs& inputs = graph.inputs();
  const auto n_embd = static_cast<size_t>(model_->config().n_embd);
  auto* states = input_memory_.host<float>(inputs.states);
  if (pass.states.empty()) {
    const auto embed = [&](int /*thread*/, size_t r) {
      model_->embed(pass.rows[r].token, {states + r * n_embd, n_embd});
    };
    if (pass.rows.size() < kEmbeddedAlone) {
      for (size_t r = 0; r < pass.rows.size(); ++r) embed(0, r);
    } else {
      model_->device().share_out(pass.rows.size(), embed);
    }
  } else {
    CHECK(pass.states.size() == pass.rows.size() * n_embd);
    std::memcpy(states, pass.states.data(), pass.states.size_bytes());
  }
  if (inputs.positions != nullptr) {
    auto* positions = input_memory_.host<int32_t>(inputs.positions);
    auto* cells = input_memory_.host<int64_t>(inputs.cells);
    for (size_t r = 0; r < pass.rows.size(); ++r) {
      positions[r] = to_int(cache_.cells().position(pass.rows[r].sequence, pass.rows[r].node));
      cells[r] = cache_.cells().cell(pass.rows[r].sequence, pass.rows[r].node);
    }
    if (inputs.temperatures != nullptr) {
      auto* temperatures = input_memory_.host<float>(inputs.temperatures);
      for (size_t r = 0; r < pass.rows.size(); ++r)
        temperatures[r] = model_->config().temperature(positions[r]);
    }
    if (inputs.mask != nullptr) fill_masks(pass, inputs);
    if (inputs.seen != nullptr) {
      model_->gpu_kernels()->fill_seen(model_->config(), visible_, graph.n_kv(), graph.attention_tiles(),
                                       input_memory_.host<std::byte>(inputs.seen));
    }
  }
  const auto fill_rows = [&](ggml_tensor* tensor, bool Row::*wanted) {
    if (tensor == nullptr) return;
    auto* out = input_memory_.host<int32_t>(tensor);
    for (size_t r = 0; r < pass.rows.size(); ++r) {
      if (pass.rows[r].*wanted) *out++ = static_cast<int32_t>(r);
    }
  };
  fill_rows(inputs.logit_rows, &Row::logits);
  fill_rows(inputs.hidden_rows, &Row::hidden);
}

void OwnPasses::fill_masks(const Pass& pass, const PassInputs& inputs) {
  const KvCells& cells = cache_.cells();
  const auto fill = [&](ggml_tensor* tensor, int window) {
    const auto n_kv = static_cast<size_t>(tensor->ne[0]);
    auto* mask = input_memory_.host<ggml_fp16_t>(tensor);
    for (size_t r = 0; r < pass.rows.size(); ++r, mask += n_kv) {
      const Row& row = pass.rows[r];
      const bool same_sequence = r > 0 && row.sequence == pass.rows[r - 1].sequence;
      if (same_sequence && row.node == pass.rows[r - 1].node) {
        std::memcpy(mask, mask - n_kv, n_kv * sizeof(*mask));
      } else if (same_sequence && cells.parent(row.sequence, row.node) == pass.rows[r - 1].node) {
        // It sees what its parent sees, and itself, less what leaves its window.
        std::memcpy(mask, mask - n_kv, n_kv * sizeof(*mask));
        mask[cells.cell(row.sequence, row.node)] = kVisible;
        const Position leaves = cells.position(row.sequence, row.node) - window;
        if (window == 0) continue;
        if (const auto cell = cells.cell_at(row.sequence, row.node, leaves)) mask[*cell] = kHidden;
      } else {
        std::fill(mask, mask + n_kv, kHidden);
        cells.for_each_visible(row.sequence, row.node, window,
                               [&](int32_t cell) { mask[cell] = kVisible; });
      }
    }
  };
  fill(inputs.mask, 0);
  if (inputs.window_mask != nullptr) fill(inputs.window_mask, model_->config().window);
}

void OwnPasses::collect(const Pass& pass, const PassGraph& graph, size_t n_rows, PassResult& result) {
  const auto index = [&](std::vector<int32_t>& places, bool Row::*wanted) {
    int32_t next = 0;
    places.resize(pass.rows.size());
    for (size_t r = 0; r < pass.rows.size(); ++r) places[r] = pass.rows[r].*wanted ? next++ : -1;
  };
  index(result.logit_index_, &Row::logits);
  index(result.hidden_index_, &Row::hidden);
  collect_logits(std::span(pass.rows).first(n_rows), graph, result);
  result.hidden_.resize(graph.hidden().size());
  if (hidden_staging_.size() < graph.hidden().size()) hidden_staging_.resize(graph.hidden().size());
  for (size_t i = 0; i < graph.hidden().size(); ++i) {
    const ggml_tensor* hidden = graph.hidden()[i];
    const auto n = static_cast<size_t>(ggml_nelements(hidden));
    result.hidden_[i] = model_->device().read(hidden, n, hidden_staging_[i]);
  }
}

void OwnPasses::collect_logits(std::span<const Row> rows, const PassGraph& graph, PassResult& result) {
  result.logits_ = {};
  result.best_ = {};
  result.whole_ = nullptr;
  const auto n = static_cast<size_t>(std::ranges::count_if(rows, &Row::logits));
  if (n == 0) return;
  const auto read = [&](const ggml_tensor* tensor, size_t n_floats) {
    return model_->device().read(tensor, n * n_floats, logits_staging_);
  };
  if (graph.best() == nullptr) {
    result.logits_ = read(graph.logits(), result.n_vocab_);
    return;
  }
  const auto best = read(graph.best(), sizeof(BestOfRow) / sizeof(float));
  result.best_ = {reinterpret_cast<const BestOfRow*>(best.data()), n};
  result.whole_ = &device_logits_;
  device_logits_.begin(graph.logits(), n);
  // All logits of neighbours at once, where they are going to be asked for.
  size_t place = 0, first = 0;
  const auto fetch = [&] {
    if (first < place) device_logits_.fetch(first, place);
  };
  for (const Row& row : rows) {
    if (!row.logits) continue;
    if (row.best_do) {
      fetch();
      first = place + 1;
    }
    ++place;
  }
  fetch();
}

}  // namespace forerun
