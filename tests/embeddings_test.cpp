// Vectors of texts against libllama's, on every kind of tiny model and on both real ones.
//
// What the engines round on the way differs (logits_test.cpp says where), so that models with float
// weights are compared with each other, and quantised ones with what exact arithmetic makes of them.
#include <forerun/engine.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "support/engine_options.h"
#include "support/gguf_builder.h"
#include "support/libllama.h"
#include "support/model_files.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

using namespace test;

constexpr double kAlike = 0.9999;
constexpr const char* kText =
    "The history of the Roman Empire is long. It began with the founding of the city and ended, many "
    "say, when the last emperor of the West was deposed in 476.";

double product(std::span<const float> a, std::span<const float> b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
  return sum;
}

double length(std::span<const float> vector) {
  return std::sqrt(product(vector, vector));
}

double cosine(std::span<const float> a, std::span<const float> b) {
  return product(a, b) / length(a) / length(b);
}

std::vector<float> embed(Engine& engine, const std::vector<TokenId>& text, Pooling pooling) {
  return engine.generate({.prompt = text, .embedding = pooling}).embedding;
}

// One text's vectors, the mean of its tokens' and the last.
struct Vectors {
  std::vector<float> tokens;  // one after the other
  std::vector<float> mean;
  std::vector<float> last;
};

Vectors ours(const std::filesystem::path& file, const std::vector<TokenId>& text,
             const std::string& kv_type = "f16") {
  EngineOptions options = engine_options("tiny-llama");
  options.model = file.string();
  options.kv_type = kv_type;
  Engine engine(options);
  return {.tokens = embed(engine, text, Pooling::kNone),
          .mean = embed(engine, text, Pooling::kMean),
          .last = embed(engine, text, Pooling::kLast)};
}

Vectors libllamas(const std::filesystem::path& file, const std::vector<TokenId>& text) {
  LibLlama reference(file, {.n_ctx = 256, .embeds = true});
  Vectors vectors{.tokens = reference.embed(text), .mean = {}, .last = {}};
  const size_t n_embd = vectors.tokens.size() / text.size();
  vectors.mean.resize(n_embd);
  for (size_t i = 0; i < vectors.tokens.size(); ++i) vectors.mean[i % n_embd] += vectors.tokens[i];
  vectors.last.assign(vectors.tokens.end() - static_cast<std::ptrdiff_t>(n_embd), vectors.tokens.end());
  return vectors;
}

std::vector<TokenId> text_of(const std::filesystem::path& file) {
  return LibLlama(file, {.n_ctx = 256}).tokenize(kText, true);
}

// Of each token's vectors.
std::vector<double> cosines(const Vectors& a, const Vectors& b) {
  EXPECT_EQ(a.tokens.size(), b.tokens.size());
  const size_t n_embd = b.last.size();
  std::vector<double> result;
  for (size_t at = 0; at < b.tokens.size(); at += n_embd) {
    result.push_back(
        cosine(std::span(a.tokens).subspan(at, n_embd), std::span(b.tokens).subspan(at, n_embd)));
  }
  return result;
}

// How far from each other they point, in the mean.
double distance(const Vectors& a, const Vectors& b) {
  const auto all = cosines(a, b);
  return 1.0 - std::accumulate(all.begin(), all.end(), 0.0) / static_cast<double>(all.size());
}

void expect_equal(const std::string& name, const std::filesystem::path& file,
                  const std::vector<TokenId>& text) {
  const Vectors found = ours(file, text);
  const Vectors expected = libllamas(file, text);
  EXPECT_GT(std::ranges::min(cosines(found, expected)), kAlike) << name;
  EXPECT_GT(cosine(found.mean, expected.mean), kAlike) << name;
  EXPECT_GT(cosine(found.last, expected.last), kAlike) << name;
  // Lengths matter too where nobody normalises.
  EXPECT_NEAR(length(found.tokens) / length(expected.tokens), 1.0, 0.001) << name;
}

TEST(Embeddings, OfTinyModelsEqualLibllamas) {
  for (const char* name : {"tiny-llama", "tiny-llama-untied", "tiny-qwen2", "tiny-qwen3", "tiny-gemma3",
                           "tiny-gemma3-softcap", "tiny-olmo2", "tiny-starcoder2", "tiny-olmo"}) {
    expect_equal(name, model_file(name), text_of(model_file(name)));
  }
}

TEST(Embeddings, OfRealModelsEqualLibllamas) {
  for (const char* name : {"smollm2", "gemma3-270m"}) {
    // With weights in F32, activations are not rounded to 8 bits.
    const TempDir folder;
    const auto exact = folder.file("f32.gguf");
    copy_gguf(model_file(name), exact, to_f32);
    const auto text = text_of(model_file(name));
    expect_equal(name, exact, text);
    // As they are, the engines round differently; neither way is further from exact arithmetic.
    const Vectors truth = ours(exact, text, "f32");
    const Vectors quantised = ours(model_file(name), text);
    const Vectors theirs = libllamas(model_file(name), text);
    EXPECT_LE(distance(quantised, truth), 1.1 * distance(theirs, truth)) << name;
  }
}

}  // namespace
}  // namespace forerun
