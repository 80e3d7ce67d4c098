#include "stopping/disco.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include "core/error.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

using test::TempDir;

constexpr ModelPair kModels{.target = 0x0123456789abcdef, .draft = 0x1f};

// Says how probable the likeliest token is: one unit that passes that feature on.
DiscoClassifier passes_on() {
  DiscoClassifier classifier{
      .models = kModels, .rule = {.threshold = 0.6, .max_tokens = 4}, .n_examples = 7, .network = {}};
  DiscoNetwork& network = classifier.network;
  network.scale.fill(1);
  network.hidden_weight.assign(2 * kDiscoFeatures, 0);
  network.hidden_weight[0] = 8;                // unit 0: 8 (p - 1/2)
  network.hidden_weight[kDiscoFeatures] = -8;  // unit 1: the negative of that
  network.hidden_bias = {-4, 4};
  network.output_weight = {1, -1};
  return classifier;
}

// The logits of a distribution, whose first token has this probability.
class Drafted {
 public:
  explicit Drafted(double probability, size_t n_vocab = 64) : logits_(n_vocab) {
    for (float& logit : logits_) {
      logit = static_cast<float>(std::log((1 - probability) / static_cast<double>(n_vocab - 1)));
    }
    logits_[0] = static_cast<float>(std::log(probability));
  }
  DraftedToken token(int depth = 1, int n_answer = 0) const {
    return {.logits = logits_,
            .sums = softmax_sums(logits_),
            .token = TokenId{0},
            .probability = 0,
            .depth = depth,
            .n_answer = n_answer};
  }

 private:
  std::vector<float> logits_;
};

TEST(DiscoFeatures, AreProbabilitiesEntropyAndPlace) {
  DiscoView view;
  const DiscoFeatures sure = view.features(Drafted(0.37, 64).token(2, 19));
  EXPECT_NEAR(sure[0], 0.37, 1e-6);
  for (size_t i = 1; i < kDiscoProbabilities; ++i) EXPECT_NEAR(sure[i], 0.63 / 63, 1e-6);
  const double entropy = -0.37 * std::log(0.37) - 0.63 * std::log(0.63 / 63);
  EXPECT_NEAR(sure[kDiscoProbabilities], entropy, 1e-5);
  EXPECT_NEAR(sure[kDiscoProbabilities + 1], std::log(20.0), 1e-6);
}

TEST(DiscoFeatures, SmallVocabulariesAreFilledUp) {
  DiscoView view;
  const DiscoFeatures features = view.features(Drafted(0.5, 3).token());
  EXPECT_NEAR(features[2], 0.25, 1e-6);
  for (size_t i = 3; i < kDiscoProbabilities; ++i) EXPECT_EQ(features[i], 0);
}

TEST(Disco, GoesOnWhileATokenIsLikelyTakenAndNotTooLong) {
  DiscoStopping policy(passes_on());
  // The logistic function of 8 (p - 1/2) is 0.6 at p = 0.55.
  EXPECT_TRUE(policy.goes_on(Drafted(0.56).token(1)));
  EXPECT_TRUE(policy.goes_on(Drafted(0.56).token(3)));
  EXPECT_FALSE(policy.goes_on(Drafted(0.99).token(4)));
  EXPECT_FALSE(policy.goes_on(Drafted(0.54).token(1)));
  EXPECT_EQ(policy.longest(), 4);
  policy.set_rule({.threshold = 0.5, .max_tokens = 9});
  EXPECT_TRUE(policy.goes_on(Drafted(0.54).token(8)));
  EXPECT_EQ(policy.longest(), 9);
}

class DiscoFile : public testing::Test {
 protected:
  std::string error(const ModelPair& models = kModels) const {
    try {
      DiscoClassifier::load(path_, models);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }

  TempDir dir_;
  std::filesystem::path path_ = dir_.path() / "classifier.gguf";
};

TEST_F(DiscoFile, ComesBackAsItWas) {
  const DiscoClassifier saved = passes_on();
  saved.save(path_);
  const DiscoClassifier loaded = DiscoClassifier::load(path_, kModels);
  EXPECT_EQ(loaded.models, saved.models);
  EXPECT_NEAR(loaded.rule.threshold, saved.rule.threshold, 1e-7);
  EXPECT_EQ(loaded.rule.max_tokens, saved.rule.max_tokens);
  EXPECT_EQ(loaded.n_examples, saved.n_examples);
  for (const double p : {0.1, 0.5, 0.9}) {
    const DiscoFeatures features = DiscoView().features(Drafted(p).token());
    EXPECT_EQ(loaded.network.chance(features), saved.network.chance(features));
  }
}

TEST_F(DiscoFile, IsForItsTwoModelsOnly) {
  passes_on().save(path_);
  EXPECT_NE(error({.target = 1, .draft = kModels.draft}).find("another model"), std::string::npos);
  EXPECT_NE(error({.target = kModels.target, .draft = 1}).find("another draft model"),
            std::string::npos);
  EXPECT_NE(error({.target = kModels.target, .draft = kModels.target}).find("a model of its own"),
            std::string::npos);
}

TEST_F(DiscoFile, OneThatANewerVersionMadeSaysSo) {
  passes_on().save(path_);
  std::ifstream stream(path_, std::ios::binary);
  std::string contents{std::istreambuf_iterator<char>(stream), {}};
  constexpr std::string_view kKey = "forerun.disco.version";
  contents.at(contents.find(kKey) + kKey.size() + sizeof(uint32_t)) = 99;  // behind its type
  std::ofstream(path_, std::ios::binary) << contents;
  EXPECT_NE(error().find("a newer version of forerun"), std::string::npos) << error();
}

TEST_F(DiscoFile, DamageIsOneLineWhereverItIs) {
  DiscoClassifier odd = passes_on();
  odd.rule.max_tokens = 0;
  odd.save(path_);
  EXPECT_NE(error().find("damaged"), std::string::npos);
  odd = passes_on();
  odd.network.output_weight[1] = NAN;
  odd.save(path_);
  EXPECT_NE(error().find("damaged"), std::string::npos);
  passes_on().save(path_);
  std::ifstream stream(path_, std::ios::binary);
  const std::string whole{std::istreambuf_iterator<char>(stream), {}};
  for (size_t n = 0; n < whole.size() - 64; n += 61) {
    std::ofstream(path_, std::ios::binary) << whole.substr(0, n);
    EXPECT_NE(error(), "") << "cut behind " << n << " bytes of " << whole.size();
    EXPECT_EQ(error().find('\n'), std::string::npos);
  }
  // Whatever byte is another, nothing worse than an error happens.
  for (size_t i = 0; i < whole.size(); i += 7) {
    std::string changed = whole;
    changed[i] = static_cast<char>(changed[i] ^ 0x5a);
    std::ofstream(path_, std::ios::binary) << changed;
    error();
  }
}

TEST_F(DiscoFile, AnotherFileIsNoClassifier) {
  EXPECT_NE(error(), "");
  std::ofstream(path_) << "text";
  EXPECT_NE(error(), "");
}

}  // namespace
}  // namespace forerun
