#include "layers/knnssd.h"

#include <algorithm>
#include <array>
#include <string_view>

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

class KnnSelector::Chooser final : public RequestLayers {
 public:
  Chooser(const KnnSelector& selector, const RequestView& request)
      : selector_(selector), request_(request) {}

  std::optional<DraftPlan> plan() override {
    if (!is_chosen_) {
      CHECK(request_.prompt_state() != nullptr);
      layers_ = selector_.layers_for(*request_.prompt_state());
      is_chosen_ = true;
    }
    return layers_ ? std::optional(DraftPlan{.layers = *layers_}) : std::nullopt;
  }

 private:
  const KnnSelector& selector_;
  const RequestView& request_;
  bool is_chosen_ = false;
  std::optional<LayerSet> layers_;
};

KnnSelector::KnnSelector(const KnnOptions& options, const Model& model)
    : domains_(DomainFile::load(options.domains, &model)), fallback_(options.fallback) {}

std::unique_ptr<RequestLayers> KnnSelector::begin(const RequestView& request) {
  return std::make_unique<Chooser>(*this, request);
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
