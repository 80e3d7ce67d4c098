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

std::optional<std::vector<TokenId>> AgreementProbe::say(std::span<const AgreementWindow> windows) {
  const auto max_rows = static_cast<size_t>(executor_.max_rows());
  std::vector<TokenId> said;
  while (!windows.empty()) {
    pass_.rows.clear();
    std::vector<ScratchGuard> guards;
    for (const AgreementWindow& window : windows) {
      CHECK(window.n > 0 && window.n < window.end && window.end <= window.request->text().size());
      CHECK(window.n <= max_rows && (window.expected.empty() || window.expected.size() == window.n));
      if (pass_.rows.size() + window.n > max_rows) break;
      guards.emplace_back(executor_.cells(), window.request->sequence());
      if (!add_rows(window)) return std::nullopt;
    }
    const PassResult& result = executor_.forward(pass_);
    size_t row = 0;
    for (const AgreementWindow& window : windows.first(guards.size())) {
      const RequestView& request = *window.request;
      for (size_t i = window.end - window.n; i < window.end; ++i, ++row) {
        // Penalties as they are now; what they were then hardly matters here.
        const Position position{static_cast<int32_t>(i)};
        said.push_back(request.sampler().sample(result.view(row), request.state(), position, scratch_));
      }
    }
    windows = windows.subspan(guards.size());
  }
  return said;
}

std::vector<TokenId> AgreementProbe::model_tokens(const AgreementWindow& window) {
  if (window.end - window.n >= window.request->n_prompt()) return {};
  pass_.layers.reset();
  return say({&window, 1}).value_or(std::vector<TokenId>());
}

std::optional<double> AgreementProbe::measure(const LayerSet& layers,
                                              std::span<const AgreementWindow> windows) {
  pass_.layers = layers;
  const auto said = say(windows);
  if (!said) return std::nullopt;
  CHECK(!said->empty());
  size_t n_agreed = 0;
  auto token = said->begin();
  for (const AgreementWindow& window : windows) {
    const auto text = window.request->text().subspan(window.end - window.n, window.n);
    for (const TokenId expected : window.expected.empty() ? text : window.expected) {
      n_agreed += *token++ == expected ? 1 : 0;
    }
  }
  return static_cast<double>(n_agreed) / static_cast<double>(said->size());
}

}  // namespace forerun
