#include "layers/agreement.h"

#include "core/check.h"
#include "model/scratch_guard.h"

namespace forerun {

std::optional<double> AgreementProbe::measure(const RequestView& request, const LayerSet& layers,
                                              size_t end, size_t n) {
  const auto text = request.text();
  CHECK(n > 0 && n < end && end <= text.size());
  KvCells& cells = executor_.cells();
  const SequenceId sequence = request.sequence();
  const ScratchGuard guard(cells, sequence);

  // The rows are the tokens before those that are compared.
  const size_t first = end - 1 - n;
  pass_.rows.clear();
  pass_.layers = layers;
  std::optional<NodeId> node = cells.branch_at(sequence, Position{static_cast<int32_t>(first)});
  for (size_t i = first; i + 1 < end; ++i) {
    if (!node) return std::nullopt;
    pass_.rows.push_back({.sequence = sequence, .node = *node, .token = text[i], .logits = true});
    node = i + 2 < end ? cells.extend(sequence, node) : std::nullopt;
  }
  const PassResult& result = executor_.forward(pass_);
  int n_same = 0;
  for (size_t row = 0; row < pass_.rows.size(); ++row) {
    // Penalties as they are now; what they were then hardly matters here.
    const size_t next = first + row + 1;
    const TokenId token = request.sampler().sample(result.logits(row), request.state(),
                                                   Position{static_cast<int32_t>(next)}, scratch_);
    n_same += token == text[next] ? 1 : 0;
  }
  return static_cast<double>(n_same) / static_cast<double>(n);
}

}  // namespace forerun
