#include "model/part_passes.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "core/check.h"
#include "core/error.h"
#include "gguf/ggml_log.h"

namespace forerun {
namespace {

constexpr size_t kMaxCachedGraphs = 96;  // for each of the part's stages
constexpr int kMinSpan = 1024;
// How many times as long as they need to be lists of cells may be.
constexpr int kSpareSpan = 4;
// Passes of up to so many rows are prepared before the first request.
constexpr int kPreparedRows = 64;
// Logits of more rows than this at once grow the buffer when first asked for.
constexpr int kReservedLogitRows = 32;

// Whether the device's flash attention takes such heads of this model and this cache.
bool flash_attention_works(const ModelConfig& config, const HeadsConfig& heads_config,
                           const ModelPart& part, KvType kv_type) {
  ggml_context_ptr context(
      ggml_init({.mem_size = 16 * ggml_tensor_overhead(), .mem_buffer = nullptr, .no_alloc = true}));
  const auto heads = [&](ggml_type type, int64_t n_rows, int64_t n_heads) {
    return ggml_new_tensor_3d(context.get(), type, heads_config.dim, n_rows, n_heads);
  };
  const int64_t n_value = config.latent.n > 0 ? config.latent.n : heads_config.dim;
  const ggml_type type = ggml_type_of(kv_type);
  ggml_tensor* k = heads(type, kKvGranularity, heads_config.n_kv);
  ggml_tensor* v = ggml_view_3d(context.get(), k, n_value, k->ne[1], k->ne[2], k->nb[1], k->nb[2], 0);
  ggml_tensor* mask = ggml_new_tensor_2d(context.get(), GGML_TYPE_F16, kKvGranularity, 1);
  ggml_tensor* operation =
      ggml_flash_attn_ext(context.get(), heads(GGML_TYPE_F32, 1, heads_config.n), k, v, mask,
                          config.attention_scale, 0.0f, config.attention_softcap);
  if (config.has_sinks)
    ggml_flash_attn_ext_add_sinks(operation,
                                  ggml_new_tensor_1d(context.get(), GGML_TYPE_F32, heads_config.n));
  return part.device->supports(operation);
}

bool flash_attention_works(const ModelConfig& config, const ModelPart& part, KvType kv_type) {
  return flash_attention_works(config, config.heads, part, kv_type) &&
         (!config.window_heads || flash_attention_works(config, *config.window_heads, part, kv_type));
}

}  // namespace

PartPasses::PartPasses(const Model& model, const ModelPart& part, const KvCache& cache,
                       const KvCells& cells, const PartPassesOptions& options)
    : model_(model),
      part_(part),
      cache_(cache),
      cells_(cells),
      options_(options),
      input_memory_(part, PassGraph::max_input_bytes(model.config(), part, options.max_rows,
                                                     part.blocks.has_attention() ? cells.n_cells() : 0)),
      context_{.model = model,
               .part = part,
               .cache = cache,
               .memory = input_memory_,
               .visible = visible_,
               .use_flash_attention = flash_attention_works(model.config(), part, cache.type())},
      allocator_(ggml_gallocr_new(part.device->default_buffer_type())),
      device_logits_(*part.device) {
  CHECK(options.min_rows > 0 && options.max_rows >= options.min_rows);
  if (part.gpu != nullptr && !part.gpu->serves(model.config(), cache.type())) {
    fail(ErrorCode::kUnsupported,
         "the model was loaded for our kernels on GPUs, which do not read its caches of type {}",
         to_string(cache.type()));
  }
  graphs_.reserve(kMaxCachedGraphs * options.n_stages + 1);
}

void PartPasses::reserve(const PassStage& stage) {
  const int n_reserved = part_.gpu != nullptr ? kPreparedRows : kReservedLogitRows;
  PassShape largest{
      .n_rows = options_.max_rows,
      .n_out = stage.has_head ? std::min(options_.max_rows, n_reserved) : options_.max_rows,
      .n_hidden = 0,
      .has_head = stage.has_head,
      .layers = stage.layers,
      .leaving = stage.leaving,
      .begin = stage.begin,
      .end = stage.end,
      .hidden_at = {}};
  if (stage.has_attention()) {
    largest.n_kv = cells_.n_cells();
    if (part_.gpu != nullptr)
      largest.attention_tiles = part_.gpu->attention_tiles(model_.config(), cache_.type(), visible_);
  }
  PassGraph graph(context_, largest);
  allocate(graph);
}

void PartPasses::prepare(const PassStage& stage) {
  const GpuKernels* gpu = part_.gpu;
  if (gpu == nullptr) return;
  for (int n_rows = kPreparedRows; n_rows >= 1; n_rows /= 2) {
    if (n_rows > options_.max_rows || n_rows != gpu->filled_up(n_rows)) continue;
    PassShape shape{.n_rows = n_rows,
                    .n_out = n_rows,
                    .n_hidden = 0,
                    .has_head = stage.has_head,
                    .layers = stage.layers,
                    .leaving = stage.leaving,
                    .begin = stage.begin,
                    .end = stage.end,
                    .hidden_at = {}};
    if (!stage.has_attention()) {
      graph_for(shape).prepare();
      continue;
    }
    shape.n_kv = kSpareSpan * kMinSpan;
    // For rows of a text each, and of one text: a draft.
    for (const int n_of_text : {1, n_rows}) {
      const int tiles = gpu->attention_tiles(model_.config(), cache_.type(), n_of_text);
      if (tiles == shape.attention_tiles) continue;
      shape.attention_tiles = tiles;
      graph_for(shape).prepare();
    }
  }
}

void PartPasses::allocate(PassGraph& graph) {
  GgmlLogCapture log;
  const size_t before = ggml_gallocr_get_buffer_size(allocator_.get(), 0);
  if (!ggml_gallocr_reserve(allocator_.get(), graph.graph())) {
    graphs_.clear();
    fail(ErrorCode::kOutOfMemory,
         "not enough memory on {} to compute a pass: {} (a smaller context: -c)",
         part_.device->info().name, log.first_error());
  }
  // A buffer that had to grow is a new one: older graphs point into the old.
  if (ggml_gallocr_get_buffer_size(allocator_.get(), 0) != before) graphs_.clear();
  CHECK(ggml_gallocr_alloc_graph(allocator_.get(), graph.graph()));
}

// Our own kernels look at what rows see and no further, so that one graph serves them for long; and what
// is to give the same bits for one row and for many must not change its span often.
int PartPasses::kv_span(int n_used) const {
  int span = (n_used + kKvGranularity - 1) / kKvGranularity * kKvGranularity;
  if (part_.has_own_kernels() || options_.min_rows > 1) {
    span = static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(span, kMinSpan))));
  }
  return std::min(span, cells_.n_cells());
}

// How many cells the lists of a pass may have: one graph serves for long.
int PartPasses::listed_span() const {
  return static_cast<int>(std::bit_ceil(static_cast<unsigned>(std::max(visible_.n_listed(), kMinSpan))));
}

PassShape PartPasses::shape_of(const StageWork& work) const {
  PassShape shape{.n_rows = static_cast<int>(rows_.size()),
                  .has_head = work.stage.has_head,
                  .layers = work.stage.layers,
                  .leaving = work.stage.leaving,
                  .begin = work.stage.begin,
                  .end = work.stage.end,
                  .hidden_at = work.hidden_at};
  for (const Row& row : rows_) {
    shape.n_out += row.logits ? 1 : 0;
    shape.n_hidden += row.hidden && !work.hidden_at.empty() ? 1 : 0;
  }
  if (!work.stage.has_attention()) return shape;
  const GpuKernels* gpu = part_.gpu;
  shape.n_kv = gpu != nullptr ? listed_span() : kv_span(cells_.n_used_span());
  if (gpu != nullptr)
    shape.attention_tiles = gpu->attention_tiles(model_.config(), cache_.type(), visible_);
  return shape;
}

// On GPUs our kernels do not mind lists that could be longer, and a graph takes as long to prepare as
// several passes.
PassGraph& PartPasses::graph_for(const PassShape& shape) {
  const int most_kv = part_.gpu != nullptr ? kSpareSpan * shape.n_kv : shape.n_kv;
  for (CachedGraph& cached : graphs_) {
    if (!cached.graph->fits(shape, most_kv)) continue;
    cached.last_used = n_stages_begun_;
    return *cached.graph;
  }
  const size_t n_input_bytes =
      PassGraph::max_input_bytes(model_.config(), part_, shape.n_rows, shape.n_kv);
  if (n_input_bytes > input_memory_.size()) {
    graphs_.clear();  // they point into it
    input_memory_ = PassInputMemory(part_, n_input_bytes);
    written_ = {};
  }
  auto graph = std::make_unique<PassGraph>(context_, shape);
  allocate(*graph);
  ++n_graphs_built_;
  if (graphs_.size() >= kMaxCachedGraphs * options_.n_stages) {
    graphs_.erase(std::min_element(
        graphs_.begin(), graphs_.end(),
        [](const CachedGraph& a, const CachedGraph& b) { return a.last_used < b.last_used; }));
  }
  graphs_.push_back({.graph = std::move(graph), .last_used = n_stages_begun_});
  return *graphs_.back().graph;
}

int PartPasses::n_computed(int n_rows) const {
  const GpuKernels* gpu = part_.gpu;
  const int n_filled =
      gpu == nullptr ? options_.min_rows : std::min(gpu->filled_up(n_rows), options_.max_rows);
  return std::max(n_rows, n_filled);
}

// As many rows as are computed. Those that fill a pass up repeat the last: they store the same in the
// same cell.
std::span<const Row> PartPasses::filled_up(std::span<const Row> wanted) {
  const auto min_rows = static_cast<size_t>(n_computed(static_cast<int>(wanted.size())));
  if (wanted.size() >= min_rows) return wanted;
  filled_rows_.assign(wanted.begin(), wanted.end());
  std::vector<Row>& rows = filled_rows_;
  rows.resize(min_rows, wanted.back());
  const auto n_out = static_cast<int>(std::ranges::count_if(wanted, &Row::logits));
  for (size_t r = wanted.size(); r < min_rows; ++r) rows[r].hidden = false;
  if (part_.gpu != nullptr) {
    // Few numbers of rows that come out too, so that few graphs serve.
    const size_t n_asking = wanted.size() + static_cast<size_t>(part_.gpu->filled_up(n_out) - n_out);
    for (size_t r = wanted.size(); r < min_rows; ++r) rows[r].logits = r < n_asking;
  } else {
    // The head's product must not depend on how many rows ask for it either.
    for (Row& row : rows) row.logits = n_out > 0;
  }
  return filled_rows_;
}

std::span<float> PartPasses::begin(const StageWork& work) {
  ++n_stages_begun_;
  CHECK(!work.rows.empty() && work.rows.size() <= static_cast<size_t>(options_.max_rows));
  n_wanted_rows_ = work.rows.size();
  rows_ = filled_up(work.rows);
  if (part_.has_own_kernels() && work.stage.has_attention() &&
      (visible_pass_ != work.pass || n_visible_ != n_wanted_rows_)) {
    visible_.fill(cells_, rows_, model_.config().sliding_window());
    visible_pass_ = work.pass;
    n_visible_ = n_wanted_rows_;
  }
  const PassShape shape = shape_of(work);
  current_ = &graph_for(shape);
  const Written needed{.pass = work.pass,
                       .n_wanted_rows = n_wanted_rows_,
                       .n_rows = shape.n_rows,
                       .n_kv = current_->n_kv(),
                       .attention_tiles = shape.attention_tiles,
                       .n_out = shape.n_out,
                       .n_hidden = shape.n_hidden};
  n_upload_bytes_ = current_->n_state_bytes();
  if (written_ != needed) {
    write_inputs();
    n_upload_bytes_ = current_->n_input_bytes();
    written_ = needed;
  }
  return {input_memory_.host<float>(current_->inputs().states),
          n_wanted_rows_ * static_cast<size_t>(model_.config().n_embd)};
}

void PartPasses::compute() {
  const auto n_embd = static_cast<size_t>(model_.config().n_embd);
  auto* states = input_memory_.host<float>(current_->inputs().states);
  for (size_t r = n_wanted_rows_; r < rows_.size(); ++r) {
    std::memcpy(states + r * n_embd, states + (n_wanted_rows_ - 1) * n_embd, n_embd * sizeof(float));
  }
  input_memory_.upload(n_upload_bytes_);
  current_->run();
}

PartPasses::Logits PartPasses::logits() {
  const auto n = static_cast<size_t>(std::ranges::count_if(rows_.first(n_wanted_rows_), &Row::logits));
  if (n == 0) return {};
  const auto read = [&](const ggml_tensor* tensor) {
    return part_.device->read(tensor, n * tensor->nb[1] / sizeof(float), logits_staging_);
  };
  if (current_->best() == nullptr) return {.all = read(current_->out())};
  device_logits_.begin(current_->out(), n);
  fetch_whole_logits();
  const auto best = read(current_->best());
  return {.best = {reinterpret_cast<const BestOfRow*>(best.data()), n}, .whole = &device_logits_};
}

// Those of neighbours at once, where they are going to be asked for.
void PartPasses::fetch_whole_logits() {
  size_t place = 0, first = 0;
  const auto fetch = [&] {
    if (first < place) device_logits_.fetch(first, place);
  };
  for (const Row& row : rows_.first(n_wanted_rows_)) {
    if (!row.logits) continue;
    if (row.best_do) {
      fetch();
      first = place + 1;
    }
    ++place;
  }
  fetch();
}

void PartPasses::read_states(std::span<float> states) const {
  CHECK(current_->out() != nullptr && states.size_bytes() <= ggml_nbytes(current_->out()));
  Device::read(current_->out(), states);
}

std::span<const float> PartPasses::hidden(size_t at) {
  if (at >= current_->hidden().size()) return {};  // no row wants it
  if (hidden_staging_.size() <= at) hidden_staging_.resize(at + 1);
  const ggml_tensor* hidden = current_->hidden()[at];
  return part_.device->read(hidden, static_cast<size_t>(ggml_nelements(hidden)), hidden_staging_[at]);
}

}  // namespace forerun
