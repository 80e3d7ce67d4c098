#include "layers/agreement.h"

#include "core/check.h"
#include "model/scratch_guard.h"

namespace forerun {

bool add_rows(KvCells& cells, const AgreementWindow& window, std::vector<Row>& rows) {
  const RequestView& request = *window.request;
  CHECK(window.n > 0 && window.n < window.end && window.end <= request.text().size());
  std::optional<NodeId> node;
  for (size_t i = window.begin() - 1; i + 1 < window.end; ++i) {
    node = node ? cells.extend(request.sequence(), node)
                : cells.branch_at(request.sequence(), Position{static_cast<int32_t>(i)});
    if (!node) return false;
    rows.push_back({.sequence = request.sequence(), .node = *node, .token = request.text()[i]});
  }
  return true;
}

namespace {

// What the model says at all places of the windows. nullopt: no room in the cache.
std::optional<std::vector<TokenId>> say(Executor& executor, const std::optional<LayerSet>& layers,
                                        std::span<const AgreementWindow> windows) {
  const auto max_rows = static_cast<size_t>(executor.max_rows());
  std::vector<TokenId> said;
  SamplerScratch scratch;
  Pass pass;
  pass.layers = layers;
  while (!windows.empty()) {
    pass.rows.clear();
    std::vector<ScratchGuard> guards;
    for (const AgreementWindow& window : windows) {
      CHECK(window.n <= max_rows && (window.expected.empty() || window.expected.size() == window.n));
      if (pass.rows.size() + window.n > max_rows) break;
      guards.emplace_back(executor.cells(), window.request->sequence());
      if (!add_rows(executor.cells(), window, pass.rows)) return std::nullopt;
      for (Row& row : std::span(pass.rows).last(window.n)) {
        row.logits = true;
        row.best_do = window.request->sampler().draws_from_best();
      }
    }
    const PassResult& result = executor.forward(pass);
    size_t row = 0;
    for (const AgreementWindow& window : windows.first(guards.size())) {
      const RequestView& request = *window.request;
      for (size_t i = window.begin(); i < window.end; ++i, ++row) {
        // Penalties as they are now; what they were then hardly matters here.
        const Position position{static_cast<int32_t>(i)};
        said.push_back(request.sampler().sample(result.view(row), request.state(), position, scratch));
      }
    }
    windows = windows.subspan(guards.size());
  }
  return said;
}

}  // namespace

std::vector<TokenId> model_tokens(Executor& executor, const AgreementWindow& window) {
  if (window.begin() >= window.request->n_prompt()) return {};
  return say(executor, std::nullopt, {&window, 1}).value_or(std::vector<TokenId>());
}

std::optional<double> measured_agreement(Executor& executor, const LayerSet& layers,
                                         std::span<const AgreementWindow> windows) {
  const auto said = say(executor, layers, windows);
  if (!said) return std::nullopt;
  CHECK(!said->empty());
  size_t n_agreed = 0;
  auto token = said->begin();
  for (const AgreementWindow& window : windows) {
    const auto text = window.request->text().subspan(window.begin(), window.n);
    for (const TokenId expected : window.expected.empty() ? text : window.expected) {
      n_agreed += *token++ == expected ? 1 : 0;
    }
  }
  return static_cast<double>(n_agreed) / static_cast<double>(said->size());
}

}  // namespace forerun
