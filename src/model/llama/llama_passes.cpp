#include "model/llama/llama_passes.h"

#include <algorithm>
#include <chrono>
#include <unordered_map>

#include "core/check.h"
#include "core/error.h"
#include "gguf/ggml_aborts.h"
#include "gguf/ggml_log.h"
#include "model/llama/llama_model.h"

namespace forerun {
namespace {

// Sequences of libllama's: one for each text, and one for each further branch of a draft. It keeps room
// for the logits of each.
constexpr int kSequences = 128;
// Where each of them takes a state of its own.
constexpr int kRecurrentSequences = 16;
// Tokens of a draft there, by which a state is rolled back: some architectures keep a state for each of
// them, for others it is kept as it was before the draft, and what was right is computed again.
constexpr int kRollback = 8;
// Cells beside ours, for what was drafted in vain and is not forgotten yet.
constexpr int kSpareCells = 512;

llama_context* make_context(const Model& model, const ExecutorOptions& options) {
  GgmlLogCapture log;
  const bool is_recurrent = model.llama()->is_recurrent();
  llama_context_params params = llama_context_default_params();
  params.n_ctx = static_cast<uint32_t>(options.kv.n_cells + kSpareCells);
  params.n_batch = params.n_ubatch = static_cast<uint32_t>(options.max_rows);
  const int n_sequences = is_recurrent ? kRecurrentSequences : kSequences;
  params.n_seq_max = static_cast<uint32_t>(std::min(n_sequences, options.max_rows));
  params.n_rs_seq = is_recurrent ? kRollback : 0;
  params.n_threads = params.n_threads_batch = model.device().n_threads();
  params.type_k = params.type_v = ggml_type_of(options.kv.type);
  params.kv_unified = true;
  params.swa_full = true;  // what was drafted is rolled back
  params.no_perf = true;
  const GgmlAbortsThrow aborts_throw;
  try {
    if (llama_context* context = llama_init_from_model(model.llama()->raw(), params)) return context;
  } catch (const std::exception& error) {
    model.llama()->check_servers();
    fail(ErrorCode::kUnsupported, "libllama cannot compute with this model: {}", error.what());
  }
  model.llama()->check_servers();
  fail(ErrorCode::kOutOfMemory, "libllama cannot make a context of {} tokens: {} (a smaller one: -c)",
       options.kv.n_cells, log.first_error());
}

// Whether questions to RPC servers take so long that passes which ask some are no measure of others.
bool has_far_server(const Model& model) {
  using namespace std::chrono_literals;
  if (!model.placement().servers) return false;
  const auto is_far = [](const NamedDevice& device) {
    constexpr auto kFar = 500us;
    constexpr int kAsked = 5;  // the quickest answer counts: the machine may be busy
    for (int i = 0; i < kAsked; ++i) {
      const auto start = std::chrono::steady_clock::now();
      n_free_bytes(device.raw);
      if (std::chrono::steady_clock::now() - start < kFar) return false;
    }
    return true;
  };
  return std::ranges::any_of(model.placement().servers->devices(), is_far);
}

}  // namespace

bool LlamaPasses::Memory::truncate(int sequence, int position) {
  return llama_memory_seq_rm(memory_, sequence, position, -1);
}

void LlamaPasses::Memory::clear(int sequence) {
  CHECK(llama_memory_seq_rm(memory_, sequence, -1, -1));
}

void LlamaPasses::Memory::copy(int from, int to, int first, int end) {
  llama_memory_seq_cp(memory_, from, to, first, end);
}

LlamaPasses::LlamaPasses(std::shared_ptr<const Model> model, const ExecutorOptions& options)
    : model_(std::move(model)),
      cells_(options.kv.n_cells),
      context_(make_context(*model_, options)),
      memory_(context_.get()),
      texts_(memory_, static_cast<int>(llama_n_seq_max(context_.get())),
             /*copies_parts=*/!model_->llama()->is_recurrent()),
      writes_(static_cast<size_t>(options.kv.n_cells)),
      tokens_(writes_.size()),
      asking_(writes_.size(), -1) {
  if (model_->llama()->is_recurrent()) {
    limits_ = {.trees = false, .depth = kRollback, .rolls_back = llama_n_rs_seq(context_.get()) > 0};
  }
  if (options.is_exact) limits_.depth = 0;
  if (model_->llama()->uses_cpu()) threads_ = give_threads(context_.get(), model_->device());
  is_far_ = has_far_server(*model_);
  model_->llama()->check_servers();
}

std::vector<Written> LlamaPasses::path_to(const Row& row) {
  std::vector<Written> path;
  const auto n = static_cast<size_t>(to_int(cells_.position(row.sequence, row.node))) + 1;
  path.reserve(n);
  std::vector<int32_t> scratch;
  std::optional<NodeId> node = row.node;
  for (; node; node = cells_.parent(row.sequence, *node)) {
    scratch.push_back(cells_.cell(row.sequence, *node));
  }
  const auto add = [&](int32_t cell) {
    uint64_t& write = writes_[static_cast<size_t>(cell)];
    if (write == 0)
      write = ++n_writes_;  // committed without ever being computed, as some measurements do
    path.push_back({.cell = cell, .write = write});
  };
  for (const int32_t cell : cells_.committed_cells(row.sequence).first(n - scratch.size())) add(cell);
  for (size_t i = scratch.size(); i-- > 0;) add(scratch[i]);
  return path;
}

void LlamaPasses::write_cells(const Pass& pass) {
  for (size_t r = 0; r < pass.rows.size(); ++r) {
    const Row& row = pass.rows[r];
    const auto cell = static_cast<size_t>(cells_.cell(row.sequence, row.node));
    writes_[cell] = ++n_writes_;
    tokens_[cell] = row.token;
    asking_[cell] = row.logits ? static_cast<int32_t>(r) : -1;
  }
}

std::vector<LlamaPasses::Leaf> LlamaPasses::leaves_of(const Pass& pass) {
  std::vector<bool> is_leaf(pass.rows.size(), true);
  std::unordered_map<int32_t, size_t> row_of_cell;
  for (size_t r = 0; r < pass.rows.size(); ++r) {
    const Row& row = pass.rows[r];
    if (const auto parent = cells_.parent(row.sequence, row.node)) {
      const auto above = row_of_cell.find(cells_.cell(row.sequence, *parent));
      if (above != row_of_cell.end()) is_leaf[above->second] = false;
    }
    row_of_cell[cells_.cell(row.sequence, row.node)] = r;
  }
  std::vector<Leaf> leaves;
  std::vector<SequenceId> seen;
  for (size_t r = 0; r < pass.rows.size(); ++r) {
    if (!is_leaf[r]) continue;
    const SequenceId sequence = pass.rows[r].sequence;
    const bool is_first = std::ranges::find(seen, sequence) == seen.end();
    if (is_first) seen.push_back(sequence);
    leaves.push_back({.sequence = sequence, .path = path_to(pass.rows[r]), .is_first = is_first});
  }
  // Texts first, further branches of them then.
  std::stable_partition(leaves.begin(), leaves.end(), [](const Leaf& leaf) { return leaf.is_first; });
  return leaves;
}

void LlamaPasses::run(const Pass& pass, PassResult& result) {
  if (!pass.states.empty() || !pass.hidden_at.empty()) model_->require_blocks("looking into a pass");
  if (pass.layers && !pass.layers->is_full()) model_->require_blocks("leaving layers out");
  model_->llama()->check_servers();
  was_usual_ = true;
  write_cells(pass);
  int32_t n_logits = 0;
  result.logit_index_.resize(pass.rows.size());
  for (size_t r = 0; r < pass.rows.size(); ++r) {
    result.logit_index_[r] = pass.rows[r].logits ? n_logits++ : -1;
  }
  logits_.resize(static_cast<size_t>(n_logits) * result.n_vocab_);
  result.logits_ = logits_;

  const std::vector<Leaf> leaves = leaves_of(pass);
  try {
    std::span<const Leaf> left = leaves;
    while (!left.empty()) left = left.subspan(compute(left, result));
  } catch (...) {
    std::ranges::fill(asking_, -1);
    throw;
  }
}

size_t LlamaPasses::compute(std::span<const Leaf> leaves, PassResult& result) {
  struct Taken {
    const Leaf* leaf;
    LlamaTexts::Place place;
  };
  std::vector<Taken> taken;
  for (const Leaf& leaf : leaves) {
    if (!leaf.is_first && !taken.empty() && taken.back().leaf->is_first) forget_what_ended();
    const auto place =
        texts_.take(leaf.path, leaf.is_first ? std::optional(leaf.sequence) : std::nullopt);
    if (!place) break;
    taken.push_back({&leaf, *place});
  }
  CHECK(!taken.empty());
  if (taken.back().leaf->is_first) forget_what_ended();
  for (const auto& [leaf, place] : taken) {
    if (!limits_.rolls_back && is_draft(*leaf, place.n_there)) {
      texts_.take(std::span(leaf->path).first(static_cast<size_t>(place.n_there)), std::nullopt);
    }
  }

  std::vector<Token> batch;
  std::unordered_map<uint64_t, size_t> places;  // in the batch, by write
  for (const auto& [leaf, place] : taken) {
    for (auto i = static_cast<size_t>(place.n_there); i < leaf->path.size(); ++i) {
      const auto [known, is_new] = places.try_emplace(leaf->path[i].write, batch.size());
      if (is_new) {
        batch.push_back(
            {.written = leaf->path[i], .position = static_cast<llama_pos>(i), .sequences = {}});
      }
      batch[known->second].sequences.push_back(place.sequence);
    }
  }
  const size_t most = llama_n_batch(context_.get());
  for (size_t first = 0; first < batch.size(); first += most) {
    decode(std::span(batch).subspan(first, std::min(most, batch.size() - first)), result);
  }
  for (const auto& [leaf, place] : taken) {
    texts_.append(place.sequence, std::span(leaf->path).subspan(static_cast<size_t>(place.n_there)));
  }
  texts_.release_all();
  return taken.size();
}

// Logits of several tokens of one text are wanted where some of them may be wrong.
bool LlamaPasses::is_draft(const Leaf& leaf, int n_there) const {
  const auto asks = [&](const Written& token) { return asking_[static_cast<size_t>(token.cell)] >= 0; };
  return std::ranges::count_if(std::span(leaf.path).subspan(static_cast<size_t>(n_there)), asks) > 1;
}

// Branches that were drafted, and texts that are no longer there.
void LlamaPasses::forget_what_ended() {
  texts_.clear_if([&](std::optional<SequenceId> owner) { return !owner || !cells_.exists(*owner); });
}

void LlamaPasses::decode(std::span<const Token> tokens, PassResult& result) {
  std::vector<llama_token> ids;
  std::vector<llama_pos> positions;
  std::vector<int32_t> n_sequences;
  std::vector<llama_seq_id*> sequences;
  std::vector<int8_t> wanted;
  for (const Token& token : tokens) {
    const auto cell = static_cast<size_t>(token.written.cell);
    ids.push_back(to_int(tokens_[cell]));
    positions.push_back(token.position);
    n_sequences.push_back(static_cast<int32_t>(token.sequences.size()));
    sequences.push_back(const_cast<llama_seq_id*>(token.sequences.data()));  // it only reads them
    wanted.push_back(asking_[cell] >= 0 ? 1 : 0);
  }
  const llama_batch batch{.n_tokens = static_cast<int32_t>(tokens.size()),
                          .token = ids.data(),
                          .embd = nullptr,
                          .pos = positions.data(),
                          .n_seq_id = n_sequences.data(),
                          .seq_id = sequences.data(),
                          .logits = wanted.data()};
  const auto n_wanted = static_cast<size_t>(std::ranges::count(wanted, 1));
  const bool is_new = shapes_.emplace(tokens.size(), n_wanted).second;
  if (is_new && is_far_) was_usual_ = false;
  GgmlLogCapture log;
  int status = llama_decode(context_.get(), batch);
  if (status == 1) {  // no room
    texts_.clear_others();
    status = llama_decode(context_.get(), batch);
  }
  if (status != 0) {
    model_->llama()->check_servers();
    texts_.release_all();
    texts_.clear_others();
    fail(status == 1 ? ErrorCode::kOutOfMemory : ErrorCode::kIo, "libllama failed to compute: {}",
         status == 1 ? "there is no room for the text" : log.first_error());
  }
  for (size_t i = 0; i < tokens.size(); ++i) {
    int32_t& row = asking_[static_cast<size_t>(tokens[i].written.cell)];
    if (row < 0) continue;
    const float* logits = llama_get_logits_ith(context_.get(), static_cast<int32_t>(i));
    CHECK(logits != nullptr);
    const auto place = static_cast<size_t>(result.logit_index_[static_cast<size_t>(row)]);
    std::copy_n(logits, result.n_vocab_,
                logits_.begin() + static_cast<std::ptrdiff_t>(place * result.n_vocab_));
    row = -1;
  }
  model_->llama()->check_servers();  // zeros come from one that was lost
}

void LlamaPasses::save(SequenceId, std::span<const TokenId>, const std::filesystem::path&) const {
  fail(ErrorCode::kUnsupported, "the context of a model that runs through libllama cannot be saved");
}

std::optional<RestoredText> LlamaPasses::restore(const std::filesystem::path&) {
  fail(ErrorCode::kUnsupported, "the context of a model that runs through libllama cannot be restored");
}

}  // namespace forerun
