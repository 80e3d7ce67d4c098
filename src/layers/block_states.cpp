#include "layers/block_states.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/check.h"
#include "model/scratch_guard.h"
#include "sampling/vocab_ops.h"

namespace forerun {

double mean_cosine(std::span<const float> a, std::span<const float> b, size_t n_embd) {
  CHECK(a.size() == b.size() && !a.empty() && a.size() % n_embd == 0);
  double sum = 0;
  for (size_t first = 0; first < a.size(); first += n_embd) {
    double dot = 0, aa = 0, bb = 0;
    for (size_t i = first; i < first + n_embd; ++i) {
      dot += static_cast<double>(a[i]) * b[i];
      aa += static_cast<double>(a[i]) * a[i];
      bb += static_cast<double>(b[i]) * b[i];
    }
    sum += aa > 0 && bb > 0 ? dot / std::sqrt(aa * bb) : 0;
  }
  return sum * static_cast<double>(n_embd) / static_cast<double>(a.size());
}

std::vector<double> BlockStates::agreement(std::span<const float> states) {
  std::vector<double> shares(states.size() / branch_size(), 0.0);
  const std::vector<Said> said = say(states);
  for (size_t i = 0; i < said.size(); ++i) {
    if (said[i].is_text) shares[i / n_tokens()] += 1.0 / static_cast<double>(n_tokens());
  }
  return shares;
}

TextBlockStates::TextBlockStates(Executor& executor, const RequestView& request, size_t end, size_t n)
    : executor_(executor), window_{.request = &request, .end = end, .n = n} {
  CHECK(n > 0 && n <= static_cast<size_t>(executor.max_rows()));
  const ScratchGuard guard(executor_.cells(), request.sequence());
  pass_.hidden_at.resize(static_cast<size_t>(2 * n_layers() + 1));
  std::iota(pass_.hidden_at.begin(), pass_.hidden_at.end(), 0);
  fill_rows(1);
  const PassResult& result = executor_.forward(pass_);
  full_.reserve(pass_.hidden_at.size() * branch_size());
  for (size_t at = 0; at < pass_.hidden_at.size(); ++at) {
    for (size_t row = 0; row < n; ++row) {
      const auto state = result.hidden(at, row);
      full_.insert(full_.end(), state.begin(), state.end());
    }
  }
}

std::span<const float> TextBlockStates::full(int boundary) const {
  CHECK(boundary >= 0 && boundary <= 2 * n_layers());
  return std::span(full_).subspan(static_cast<size_t>(boundary) * branch_size(), branch_size());
}

size_t TextBlockStates::fill_rows(size_t n_branches) {
  KvCells& cells = executor_.cells();
  const auto room = static_cast<size_t>(std::min(executor_.max_rows(), cells.n_free())) / n_tokens();
  if (room == 0) {
    fail(ErrorCode::kContextFull, "no room in the cache to try other layers on {} tokens", n_tokens());
  }
  const size_t n = std::min(n_branches, room);
  pass_.rows.clear();
  for (size_t branch = 0; branch < n; ++branch) CHECK(add_rows(cells, window_, pass_.rows));
  for (Row& row : pass_.rows) (pass_.hidden_at.empty() ? row.logits : row.hidden) = true;
  return n;
}

template <typename Take>
void TextBlockStates::run_from(int boundary, std::span<const float> states, Take take) {
  pass_.entered_at = boundary;
  for (size_t first = 0; first < states.size(); first += pass_.states.size()) {
    const ScratchGuard guard(executor_.cells(), window_.request->sequence());
    const size_t n = fill_rows((states.size() - first) / branch_size());
    pass_.states = states.subspan(first, n * branch_size());
    const PassResult& result = executor_.forward(pass_);
    for (size_t row = 0; row < pass_.rows.size(); ++row) take(result, row, first / n_embd() + row);
  }
}

void TextBlockStates::run(BlockId block, std::span<float> states) {
  pass_.layers = LayerSet::none(n_layers());
  pass_.layers->set(block, true);
  pass_.hidden_at.assign(1, to_int(block) + 1);
  run_from(to_int(block), states, [&](const PassResult& result, size_t row, size_t i) {
    std::ranges::copy(result.hidden(0, row), &states[i * n_embd()]);
  });
}

std::vector<BlockStates::Said> TextBlockStates::say(std::span<const float> states) {
  std::vector<Said> said;
  pass_.layers = LayerSet::none(n_layers());
  pass_.hidden_at.clear();
  run_from(2 * n_layers(), states, [&](const PassResult& result, size_t row, size_t i) {
    const RequestView& request = *window_.request;
    const size_t next = window_.begin() + i % n_tokens();
    const auto logits = result.logits(row);
    const TokenId token = request.sampler().sample(logits, request.state(),
                                                   Position{static_cast<int32_t>(next)}, scratch_);
    said.push_back(
        {.is_text = token == request.text()[next], .probability = probability_of(token, logits)});
  });
  return said;
}

}  // namespace forerun
