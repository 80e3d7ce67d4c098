#include "layers/domain_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "layers/planted_model.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

using Json = nlohmann::ordered_json;

DomainFile two_domains() {
  DomainFile file{.model = 0xfedcba9876543210u,
                  .n_layers = 4,
                  .n_embd = 3,
                  .vector = PromptVector::kLast,
                  .least_cosine = 0.25};
  Domain sums{.name = "sums", .layers = LayerSet::full(4), .anchors = {1, 0, 0, 0.6f, 0.8f, 0}};
  sums.layers.set(BlockId{2}, false);
  sums.layers.set(BlockId{5}, false);
  sums.found = {.method = "neighbour",
                .objective = "expected",
                .speedup = 1.5,
                .n_texts = 8,
                .n_tokens = 256,
                .n_candidates = 77,
                .best_so_far = {1, 1.5}};
  file.domains.push_back(sums);
  file.domains.push_back({.name = "poems", .layers = LayerSet::full(4), .anchors = {0.1f, 0, -1e-7f}});
  return file;
}

PromptState state_of(const std::vector<float>& row) {
  PromptState state;
  state.add(row);
  return state;
}

ErrorCode code_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return ErrorCode::kIo;
}

class DomainFileTest : public ::testing::Test {
 protected:
  DomainFileTest() { two_domains().save(path_); }
  Json json() const {
    std::ifstream stream(path_);
    return Json::parse(stream);
  }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  ErrorCode code_of_load() const {
    return code_of([&] { DomainFile::load(path_); });
  }

  test::TempDir folder_;
  std::filesystem::path path_ = folder_.file("domains.json");
};

TEST_F(DomainFileTest, ComesBackAsItWas) {
  const DomainFile saved = two_domains();
  const DomainFile loaded = DomainFile::load(path_);
  EXPECT_EQ(loaded.model, saved.model);
  EXPECT_EQ(loaded.n_layers, 4);
  EXPECT_EQ(loaded.n_embd, 3);
  EXPECT_EQ(loaded.vector, PromptVector::kLast);
  EXPECT_EQ(loaded.least_cosine, 0.25);
  ASSERT_EQ(loaded.domains.size(), 2u);
  for (size_t i = 0; i < 2; ++i) {
    EXPECT_EQ(loaded.domains[i].name, saved.domains[i].name);
    EXPECT_EQ(loaded.domains[i].layers, saved.domains[i].layers);
    EXPECT_EQ(loaded.domains[i].anchors, saved.domains[i].anchors) << "bit for bit";
    EXPECT_EQ(loaded.domains[i].found.method, saved.domains[i].found.method);
    EXPECT_EQ(loaded.domains[i].found.best_so_far, saved.domains[i].found.best_so_far);
  }
}

TEST_F(DomainFileTest, CosinesAreThoseOfTheNearestAnchors) {
  const DomainFile file = two_domains();
  const auto cosines = file.cosines(state_of({3, 4, 0}));
  ASSERT_EQ(cosines.size(), 2u);
  EXPECT_NEAR(cosines[0], 1, 1e-6);
  EXPECT_NEAR(cosines[1], 0.6, 1e-6);
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float bad : {0.0f, infinity, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_EQ(file.cosines(state_of({bad, bad, bad})), (std::vector<double>{-1, -1}));
  }
}

TEST_F(DomainFileTest, WhatIsNoSuchFileIsAnError) {
  EXPECT_EQ(code_of([&] { DomainFile::load(folder_.file("none")); }), ErrorCode::kNotFound);
  EXPECT_EQ(code_of([&] { DomainFile::load(folder_.file("")); }), ErrorCode::kIo);
  for (const char* text : {"", "{", "[]", "7", "{}", "{\"forerun_domains\": 1}", "\xff\xfe"}) {
    write(text);
    EXPECT_EQ(code_of_load(), ErrorCode::kInvalidFile) << text;
  }
}

TEST_F(DomainFileTest, DamageIsAnError) {
  const Json good = json();
  const auto damaged = [&](const char* pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    write(bad.dump());
    EXPECT_EQ(code_of_load(), ErrorCode::kInvalidFile) << pointer << " = " << value;
  };
  damaged("/forerun_domains", "one");
  damaged("/model", "a model");
  damaged("/model", "");
  damaged("/n_layers", 0);
  damaged("/n_layers", 100000);
  damaged("/n_layers", 1);  // then a block is out of range
  damaged("/n_embd", 4);
  damaged("/vector", "middle");
  damaged("/least_cosine", 2);
  damaged("/least_cosine", nullptr);
  damaged("/domains", Json::array());
  damaged("/domains/0/name", "");
  damaged("/domains/0/name", "poems");
  damaged("/domains/0/skipped/0", -1);
  damaged("/domains/0/skipped/0", 8);
  damaged("/domains/0/skipped", "all");
  damaged("/domains/0/found", nullptr);
  damaged("/domains/0/anchors", Json::array());
  damaged("/domains/0/anchors/1", {1, 2});
  damaged("/domains/0/anchors/1", {0, 0, 0});
  damaged("/domains/0/anchors/1/2", "x");
  damaged("/domains/0/anchors/1/2", 1e300);
  const std::string text = good.dump();
  for (size_t n = 0; n < text.size(); n += 7) {
    write(text.substr(0, n));
    EXPECT_EQ(code_of_load(), ErrorCode::kInvalidFile) << "the first " << n << " bytes";
  }
  write(good.dump());
  EXPECT_NO_THROW(DomainFile::load(path_));
}

TEST_F(DomainFileTest, NewerVersionsAndOtherModelsAreSaidToBe) {
  Json newer = json();
  newer["forerun_domains"] = 2;
  newer.erase("domains");
  write(newer.dump());
  EXPECT_EQ(code_of_load(), ErrorCode::kUnsupported);

  const test::TempDir folder;
  test::tiny_model({.n_layers = 4, .n_vocab = 300}).write(folder.file("model.gguf"));
  const auto model = Model::load(GgufFile::open(folder.file("model.gguf")),
                                 Device::open({.name = "cpu", .n_threads = 1, .pin_threads = false}));
  const auto load = [&] { DomainFile::load(path_, model.get()); };
  DomainFile file = two_domains();
  file.save(path_);
  EXPECT_EQ(code_of(load), ErrorCode::kInvalidArgument);
  file.model = model->fingerprint();
  file.save(path_);
  EXPECT_EQ(code_of(load), ErrorCode::kInvalidArgument) << "states of another size";
  file.n_embd = model->config().n_embd;
  for (Domain& domain : file.domains) domain.anchors.assign(static_cast<size_t>(file.n_embd), 1);
  file.save(path_);
  EXPECT_NO_THROW(load());
}

}  // namespace
}  // namespace forerun
