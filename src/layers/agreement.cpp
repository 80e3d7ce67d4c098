#include "layers/agreement.h"

#include "core/check.h"
#include "model/scratch_guard.h"

namespace forerun {

bool AgreementProbe::add_rows(const AgreementWindow& window) {
  const RequestView& request = *window.request;
  KvCells& cells = executor_.cells();
  std::optional<NodeId> node;
  for (size_t i = window.end - 1 - window.n; i + 1 < window.end; ++i) {
    node = node ? cells.extend(request.sequence(), node)
                : cells.branch_at(request.sequence(), Position{static_cast<int32_t>(i)});
    if (!node) return false;
    pass_.rows.push_back({.sequence = request.sequence(),
                          .node = *node,
                          .token = request.text()[i],
                          .logits = true,
                          .best_do = request.sampler().draws_from_best()});
  }
  return true;
}

template <typename Take>
bool AgreementProbe::for_each_token(std::span<const AgreementWindow> windows, Take take) {
  const auto max_rows = static_cast<size_t>(executor_.max_rows());
  while (!windows.empty()) {
    pass_.rows.clear();
    std::vector<ScratchGuard> guards;
    for (const AgreementWindow& window : windows) {
      CHECK(window.n > 0 && window.n < window.end && window.end <= window.request->text().size());
      CHECK(window.n <= max_rows && (window.expected.empty() || window.expected.size() == window.n));
      if (pass_.rows.size() + window.n > max_rows) break;
      guards.emplace_back(executor_.cells(), window.request->sequence());
      if (!add_rows(window)) return false;
    }
    const PassResult& result = executor_.forward(pass_);
    size_t row = 0;
    for (const AgreementWindow& window : windows.first(guards.size())) {
      const RequestView& request = *window.request;
      for (size_t i = 0; i < window.n; ++i, ++row) {
        // Penalties as they are now; what they were then hardly matters here.
        const Position position{static_cast<int32_t>(window.end - window.n + i)};
        take(window, i, request.sampler().sample(result.view(row), request.state(), position, scratch_));
      }
    }
    windows = windows.subspan(guards.size());
  }
  return true;
}

std::vector<TokenId> AgreementProbe::model_tokens(const AgreementWindow& window) {
  std::vector<TokenId> said;
  if (window.end - window.n >= window.request->n_prompt()) return said;
  pass_.layers.reset();
  for_each_token({&window, 1},
                 [&](const AgreementWindow&, size_t, TokenId token) { said.push_back(token); });
  return said;
}

std::optional<double> AgreementProbe::measure(const LayerSet& layers,
                                              std::span<const AgreementWindow> windows) {
  size_t n_agreed = 0;
  size_t n_all = 0;
  pass_.layers = layers;
  const auto compare = [&](const AgreementWindow& window, size_t i, TokenId token) {
    const TokenId expected =
        window.expected.empty() ? window.request->text()[window.end - window.n + i] : window.expected[i];
    n_agreed += token == expected ? 1 : 0;
    ++n_all;
  };
  if (!for_each_token(windows, compare)) return std::nullopt;
  CHECK(n_all > 0);
  return static_cast<double>(n_agreed) / static_cast<double>(n_all);
}

}  // namespace forerun
