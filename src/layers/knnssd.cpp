#include "layers/knnssd.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/check.h"

namespace forerun {
namespace {

constexpr std::array<std::string_view, 3> kFallbacks = {"none", "nearest", "uniform"};
// Half of the blocks; the published code leaves out every other layer.
constexpr double kUniformSkip = 0.5;

}  // namespace

void KnnOptions::describe(OptionVisitor& visitor) {
  visitor.visit({.name = "domains",
                 .help = "File of domains, made with 'forerun domains build'",
                 .if_empty = "knnssd needs domains: make them with 'forerun domains build' and name the "
                             "file with --knnssd-domains"},
                domains, {});
  visitor.visit({"fallback", "Layers for prompts that are like those of no domain"}, fallback,
                kFallbacks);
}

// The prompt, which is not read yet, says it once.
NextPlan KnnSelector::begin(const RequestView& request) {
  return [this, &request, is_known = false, plan = std::optional<DraftPlan>()]() mutable {
    if (std::exchange(is_known, true)) return plan;
    CHECK(request.prompt_state() != nullptr);
    if (const auto layers = layers_for(*request.prompt_state())) plan = DraftPlan{.layers = *layers};
    return plan;
  };
}

std::optional<LayerSet> KnnSelector::layers_for(const PromptState& prompt) const {
  const std::vector<double> cosines = domains_.cosines(prompt);
  const auto nearest = std::max_element(cosines.begin(), cosines.end());
  if (*nearest < domains_.least_cosine && fallback_ != "nearest") {
    if (fallback_ == "none") return std::nullopt;
    return uniform_layers(domains_.n_layers, kUniformSkip);
  }
  const LayerSet& layers = domains_.domains[static_cast<size_t>(nearest - cosines.begin())].layers;
  return layers.is_full() ? std::nullopt : std::optional(layers);
}

}  // namespace forerun
