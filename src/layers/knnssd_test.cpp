// Routing prompts of a small model to the layers of the domain they are like.
#include "layers/knnssd.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "layers/planted_model.h"

namespace forerun {
namespace {

using test::kPlantedLayers;

// A request whose prompt was read, and is there to be looked at.
class ReadPrompt final : public RequestView {
 public:
  explicit ReadPrompt(PromptState state) : state_(std::move(state)) {}
  const PromptState* prompt_state() const override {
    ++n_asked;
    return &state_;
  }
  mutable int n_asked = 0;

  std::span<const TokenId> text() const override { return {}; }
  size_t n_prompt() const override { return text().size(); }
  SequenceId sequence() const override { return SequenceId{0}; }
  const Sampler& sampler() const override { return sampler_; }
  const SamplerState& state() const override { return sampler_state_; }
  bool compares_distributions() const override { return false; }

 private:
  PromptState state_;
  Sampler sampler_{{}, 300};
  SamplerState sampler_state_;
};

class KnnTest : public test::PlantedTest {
 protected:
  KnnTest() {
    file_.model = model_->fingerprint();
    file_.n_layers = kPlantedLayers;
    file_.n_embd = model_->config().n_embd;
    file_.least_cosine = -1;
    // Prompts of one domain are made of the same few tokens.
    for (int d = 0; d < 3; ++d) {
      Domain& domain = file_.domains.emplace_back();
      domain.name = "domain " + std::to_string(d);
      domain.layers = layers_of(d);
      for (int i = 0; i < 6; ++i) {
        const PromptState state = state_of(prompt(d, i));
        domain.anchors.insert(domain.anchors.end(), state.mean().begin(), state.mean().end());
      }
    }
  }
  static std::vector<TokenId> prompt(int domain, int i) {
    std::vector<TokenId> tokens;
    for (int k = 0; k < 12; ++k) tokens.push_back(TokenId{40 * domain + (k * (i + 3) + i) % 5});
    return tokens;
  }
  static LayerSet layers_of(int domain) {
    LayerSet layers = LayerSet::full(kPlantedLayers);
    if (domain > 0) layers.set(BlockId{2 + domain}, false);
    return layers;
  }
  PromptState state_of(const std::vector<TokenId>& tokens) {
    return read_prompt_state(*executor_, tokens).value();
  }
  KnnSelector selector(const std::string& fallback = "none") {
    file_.save(path_);
    return {{.domains = path_.string(), .fallback = fallback}, resources_};
  }

  SelectorResources resources_{*executor_, costs_};
  test::TempDir folder_;
  DomainFile file_;
  std::filesystem::path path_ = folder_.file("domains.json");
};

TEST_F(KnnTest, PromptsGetTheLayersOfTheirDomain) {
  KnnSelector selector = this->selector();
  EXPECT_TRUE(selector.wants_prompt_state());
  for (int d = 0; d < 3; ++d) {
    for (int i = 10; i < 14; ++i) {
      const auto layers = selector.layers_for(state_of(prompt(d, i)));
      if (d == 0) {
        EXPECT_FALSE(layers.has_value()) << "nothing left out: not worth a draft";
      } else {
        EXPECT_EQ(layers, layers_of(d));
      }
    }
  }
}

TEST_F(KnnTest, ThePromptDecidesOnce) {
  KnnSelector selector = this->selector();
  const ReadPrompt request(state_of(prompt(2, 11)));
  const auto chooser = selector.begin(request);
  EXPECT_EQ(request.n_asked, 0) << "it is not read yet";
  for (int i = 0; i < 3; ++i) EXPECT_EQ(chooser().value().layers, layers_of(2));
  EXPECT_LE(request.n_asked, 2);
}

TEST_F(KnnTest, PromptsLikeNoneFallBack) {
  PromptState foreign;
  std::vector<float> row;
  for (int i = 0; i < file_.n_embd; ++i) row.push_back(i % 3 == 0 ? 1.0f : -0.5f);
  foreign.add(row);
  const PromptState known = state_of(prompt(2, 1));
  const auto cosines = file_.cosines(foreign);
  const double far = *std::max_element(cosines.begin(), cosines.end());
  const double near = file_.cosines(known)[2];
  ASSERT_LT(far, near);
  file_.least_cosine = (far + near) / 2;
  file_.domains[0].layers = layers_of(5);
  EXPECT_FALSE(selector("none").layers_for(foreign).has_value());
  EXPECT_EQ(selector("uniform").layers_for(foreign), uniform_layers(kPlantedLayers, 0.5));
  const auto nearest =
      static_cast<size_t>(std::max_element(cosines.begin(), cosines.end()) - cosines.begin());
  EXPECT_EQ(selector("nearest").layers_for(foreign), file_.domains[nearest].layers);
  // One that is near gets its layers in any case.
  for (const char* fallback : {"none", "nearest", "uniform"}) {
    EXPECT_EQ(selector(fallback).layers_for(known), layers_of(2)) << fallback;
  }
}

TEST_F(KnnTest, FilesThatDoNotFitAreErrors) {
  EXPECT_THROW(KnnSelector({}, resources_), Error);
  EXPECT_THROW(KnnSelector({.domains = folder_.file("none").string()}, resources_), Error);
  file_.model ^= 1;
  EXPECT_THROW(selector(), Error);
}

}  // namespace
}  // namespace forerun
