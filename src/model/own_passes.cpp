#include "model/own_passes.h"

#include <algorithm>
#include <cstring>
#include <numeric>

#include "core/check.h"

namespace forerun {
namespace {

// Rows that take less to embed than threads to wake.
constexpr size_t kEmbeddedAlone = 48;

std::vector<KvCache> make_caches(const Model& model, const KvOptions& options) {
  std::vector<KvCache> caches;
  for (const ModelPart& part : model.parts()) caches.emplace_back(model.config(), part, options);
  return caches;
}

}  // namespace

OwnPasses::OwnPasses(std::shared_ptr<const Model> model, const ExecutorOptions& options)
    : model_(std::move(model)),
      caches_(make_caches(*model_, options.kv)),
      cells_(KvCache::n_cells_for(options.kv.n_cells)) {
  plan_stages(plan(), LayerSet::full(model_->config().n_layers), /*wants_logits=*/true, stages_);
  const auto parts = model_->parts();
  for (size_t p = 0; p < parts.size(); ++p) {
    // Rows beside others cost CPUs something, and where the bits of ours do not depend on them, others
    // alone need them.
    const bool fills = parts.size() == 1 || !parts[p].has_own_kernels();
    const auto n_stages = std::ranges::count(stages_, static_cast<int>(p), &PassStage::part);
    parts_.push_back(std::make_unique<PartPasses>(
        *model_, parts[p], caches_[p], cells_,
        PartPassesOptions{.max_rows = options.max_rows,
                          .min_rows = fills ? options.min_rows : 1,
                          .n_stages = std::max<size_t>(1, static_cast<size_t>(n_stages))}));
  }
  reserve();
}

void OwnPasses::reserve() {
  for (const PassStage& stage : stages_) parts_[static_cast<size_t>(stage.part)]->reserve(stage);
  for (const PassStage& stage : stages_) parts_[static_cast<size_t>(stage.part)]->prepare(stage);
}

int OwnPasses::n_computed(int n_rows) const {
  int n = parts_.front()->n_computed(n_rows);
  for (const auto& part : parts_) n = std::min(n, part->n_computed(n_rows));
  return n;
}

int OwnPasses::n_until_next_span(int position) const {
  int span = parts_.front()->kv_span(position + 1);
  for (const auto& part : parts_) span = std::min(span, part->kv_span(position + 1));
  return span - position - 1;
}

int OwnPasses::n_graphs_built() const {
  int n = 0;
  for (const auto& part : parts_) n += part->n_graphs_built();
  return n;
}

KvContents OwnPasses::contents() const {
  KvContents contents{
      .type = caches_.front().type(), .model_fingerprint = model_->fingerprint(), .tensors = {}};
  for (int layer = 0; layer < model_->config().n_layers; ++layer) {
    if (!model_->config().has_cells(layer)) continue;
    const int part = model_->part_of_block()[static_cast<size_t>(2 * layer)];
    const KvCache& cache = caches_[static_cast<size_t>(part)];
    contents.tensors.push_back(cache.keys(layer));
    if (model_->config().latent.n == 0) contents.tensors.push_back(cache.values(layer));
  }
  return contents;
}

void OwnPasses::save(SequenceId sequence, std::span<const TokenId> tokens,
                     const std::filesystem::path& path) const {
  contents().save(cells_, sequence, tokens, path);
}

std::optional<RestoredText> OwnPasses::restore(const std::filesystem::path& path) {
  return contents().restore(cells_, path);
}

void OwnPasses::plan_stages_of(const Pass& pass) {
  const LayerSet layers = pass.layers.value_or(LayerSet::full(model_->config().n_layers));
  CHECK(layers.n_layers() == model_->config().n_layers);
  CHECK(std::is_sorted(pass.hidden_at.begin(), pass.hidden_at.end()));
  CHECK(pass.entered_at == 0 || !pass.states.empty());
  CHECK(pass.hidden_at.empty() ||
        (pass.hidden_at.front() >= 0 && pass.hidden_at.back() <= layers.n_blocks()));
  const ModelConfig& config = model_->config();
  StagePlan plan = this->plan();
  // Rows of which nothing is wanted need no layers that leave no cells.
  plan.parts_sharing =
      config.first_sharing_cells && 2 * *config.first_sharing_cells > pass.entered_at &&
      std::ranges::any_of(pass.rows, [](const Row& r) { return !r.logits && !r.hidden; });
  plan_stages(plan, layers, std::ranges::any_of(pass.rows, &Row::logits), stages_);
  stages_.front().begin = pass.entered_at;
  last_writing_stage_ =
      last_writing_stage(stages_, config.first_sharing_cells.value_or(config.n_layers));
}

void OwnPasses::run(const Pass& pass, PassResult& result) {
  CHECK(!pass.rows.empty());
  ++n_passes_;
  plan_stages_of(pass);
  rows_.assign(pass.rows.begin(), pass.rows.end());
  row_of_pass_.resize(pass.rows.size());
  std::iota(row_of_pass_.begin(), row_of_pass_.end(), 0);
  result.logits_ = {};
  result.best_ = {};
  result.whole_ = nullptr;
  result.logit_index_.assign(pass.rows.size(), -1);
  result.hidden_.assign(pass.hidden_at.size(), {});
  result.hidden_index_.assign(pass.rows.size(), -1);
  int32_t n_hidden_rows = 0;
  for (size_t r = 0; r < pass.rows.size(); ++r) {
    if (pass.rows[r].hidden) result.hidden_index_[r] = n_hidden_rows++;
  }

  was_usual_ = true;
  const PartPasses* before = nullptr;
  size_t first = 0;  // boundary of the stage's, in hidden_at
  for (size_t s = 0; s < stages_.size() && !rows_.empty(); ++s) {
    const PassStage& stage = stages_[s];
    const bool is_last = s + 1 == stages_.size();
    const auto behind = std::upper_bound(pass.hidden_at.begin(), pass.hidden_at.end(), stage.end);
    const size_t n = static_cast<size_t>(behind - pass.hidden_at.begin()) - first;
    PartPasses& part = *parts_[static_cast<size_t>(stage.part)];
    // Its states are where the next stage's graph will be.
    const bool stays = before == &part;
    if (stays) {
      between_.resize(rows_.size() * static_cast<size_t>(model_->config().n_embd));
      part.read_states(between_);
    }
    const std::span<float> states =
        part.begin({.stage = stage,
                    .pass = n_passes_,
                    .rows = rows_for(pass, s),
                    .hidden_at = std::span(pass.hidden_at).subspan(first, n)});
    if (before == nullptr) {
      enter(pass, states);
    } else if (stays) {
      std::ranges::copy(between_, states.begin());
    } else {
      before->read_states(states);
    }
    part.compute();
    was_usual_ = was_usual_ && part.was_usual();
    collect_hidden(part, first, n, is_last, result);
    if (is_last) {
      collect_logits(part, result);
    } else {
      keep_rows_that_came_out(part);
    }
    before = &part;
    first += n;
  }
}

void OwnPasses::enter(const Pass& pass, std::span<float> states) const {
  const auto n_embd = static_cast<size_t>(model_->config().n_embd);
  if (!pass.states.empty()) {
    CHECK(pass.states.size() == states.size());
    std::memcpy(states.data(), pass.states.data(), pass.states.size_bytes());
    return;
  }
  const auto embed = [&](int /*thread*/, size_t r) {
    model_->embed(pass.rows[r].token, states.subspan(r * n_embd, n_embd));
  };
  if (pass.rows.size() < kEmbeddedAlone) {
    for (size_t r = 0; r < pass.rows.size(); ++r) embed(0, r);
  } else {
    model_->helping_device().share_out(pass.rows.size(), embed);
  }
}

// Behind the last block that writes cells rows no longer look at each other, so that only those go on of
// which something is wanted there.
std::span<const Row> OwnPasses::rows_for(const Pass& pass, size_t stage) {
  if (stage + 1 == stages_.size()) return rows_;
  const bool all_go_on = static_cast<int>(stage) < last_writing_stage_;
  const bool is_seen_later = !pass.hidden_at.empty() && pass.hidden_at.back() > stages_[stage].end;
  stage_rows_ = rows_;
  for (Row& row : stage_rows_) row.logits = all_go_on || row.logits || (row.hidden && is_seen_later);
  return stage_rows_;
}

void OwnPasses::keep_rows_that_came_out(const PartPasses& part) {
  size_t n = 0;
  for (size_t r = 0; r < rows_.size(); ++r) {
    if (!part.came_out(r)) continue;
    rows_[n] = rows_[r];
    row_of_pass_[n++] = row_of_pass_[r];
  }
  rows_.resize(n);
}

// What stages before the last have is copied: another stage of the part may follow.
void OwnPasses::collect_hidden(PartPasses& part, size_t first, size_t n, bool is_last,
                               PassResult& result) {
  if (hidden_.size() < first + n) hidden_.resize(first + n);
  for (size_t i = 0; i < n; ++i) {
    std::span<const float> hidden = part.hidden(i);
    if (!is_last) {
      hidden_[first + i].assign(hidden.begin(), hidden.end());
      hidden = hidden_[first + i];
    }
    result.hidden_[first + i] = hidden;
  }
}

void OwnPasses::collect_logits(PartPasses& part, PassResult& result) {
  int32_t n = 0;
  for (size_t r = 0; r < rows_.size(); ++r) {
    if (part.came_out(r)) result.logit_index_[static_cast<size_t>(row_of_pass_[r])] = n++;
  }
  const auto logits = part.logits();
  result.logits_ = logits.all;
  result.best_ = logits.best;
  result.whole_ = logits.whole;
}

}  // namespace forerun
