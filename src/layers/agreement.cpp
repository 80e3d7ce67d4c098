#include "layers/agreement.h"

#include "core/check.h"
#include "model/scratch_guard.h"

namespace forerun {

bool AgreementProbe::add_rows(const AgreementWindow& window) {
  const auto text = window.request->text();
  const SequenceId sequence = window.request->sequence();
  KvCells& cells = executor_.cells();
  const size_t first = window.end - 1 - window.n;
  std::optional<NodeId> node = cells.branch_at(sequence, Position{static_cast<int32_t>(first)});
  for (size_t i = first; i + 1 < window.end; ++i) {
    if (!node) return false;
    pass_.rows.push_back({.sequence = sequence, .node = *node, .token = text[i], .logits = true});
    if (i + 2 < window.end) node = cells.extend(sequence, node);
  }
  return true;
}

// Penalties as they are now; what they were then hardly matters here.
TokenId AgreementProbe::said(const PassResult& result, size_t first_row, const AgreementWindow& window,
                             size_t i) {
  const RequestView& request = *window.request;
  const Position position{static_cast<int32_t>(window.end - window.n + i)};
  return request.sampler().sample(result.logits(first_row + i), request.state(), position, scratch_);
}

size_t AgreementProbe::n_same(std::span<const AgreementWindow> windows) {
  const PassResult& result = executor_.forward(pass_);
  size_t n = 0;
  size_t row = 0;
  for (const AgreementWindow& window : windows) {
    const auto expected = window.expected.empty()
                              ? window.request->text().subspan(window.end - window.n, window.n)
                              : window.expected;
    CHECK(expected.size() == window.n);
    for (size_t i = 0; i < window.n; ++i) n += said(result, row, window, i) == expected[i] ? 1 : 0;
    row += window.n;
  }
  return n;
}

std::vector<TokenId> AgreementProbe::model_tokens(const AgreementWindow& window) {
  if (window.end - window.n >= window.request->n_prompt()) return {};
  const ScratchGuard guard(executor_.cells(), window.request->sequence());
  pass_.rows.clear();
  pass_.layers.reset();
  if (!add_rows(window)) return {};
  const PassResult& result = executor_.forward(pass_);
  std::vector<TokenId> words;
  for (size_t i = 0; i < window.n; ++i) words.push_back(said(result, 0, window, i));
  return words;
}

std::optional<double> AgreementProbe::measure(const LayerSet& layers,
                                              std::span<const AgreementWindow> windows) {
  const auto max_rows = static_cast<size_t>(executor_.max_rows());
  size_t n_agreed = 0;
  size_t n_all = 0;
  pass_.layers = layers;
  for (size_t begin = 0; begin < windows.size();) {
    pass_.rows.clear();
    std::vector<ScratchGuard> guards;
    size_t end = begin;
    for (; end < windows.size(); ++end) {
      const AgreementWindow& window = windows[end];
      CHECK(window.n > 0 && window.n < window.end && window.end <= window.request->text().size());
      CHECK(window.n <= max_rows);
      if (pass_.rows.size() + window.n > max_rows) break;
      guards.emplace_back(executor_.cells(), window.request->sequence());
      if (!add_rows(window)) return std::nullopt;
    }
    n_all += pass_.rows.size();
    n_agreed += n_same(windows.subspan(begin, end - begin));
    begin = end;
  }
  CHECK(n_all > 0);
  return static_cast<double>(n_agreed) / static_cast<double>(n_all);
}

}  // namespace forerun
