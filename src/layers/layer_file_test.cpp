#include "layers/layer_file.h"

#include <gtest/gtest.h>

#include <fstream>
#include <random>

#include "core/error.h"
#include "support/temp_dir.h"

namespace forerun {
namespace {

std::optional<ErrorCode> load_error(const std::filesystem::path& path, const LayerModel& model) {
  try {
    LayerFile::load(path, model);
    return std::nullopt;
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos);
    return error.code();
  }
}

TEST(LayerFile, ComesBack) {
  const test::TempDir folder;
  const auto path = folder.file("layers.json");
  std::mt19937 random(3);
  for (const int n_layers : {1, 30, 512}) {
    LayerFile file{.model = 0xfedcba9876543210u,
                   .layers = LayerSet::full(n_layers),
                   .found = {.method = "swift",
                             .objective = "expected",
                             .speedup = 1.25,
                             .n_texts = 8,
                             .n_tokens = 512,
                             .n_candidates = 3,
                             .best_so_far = {0.5, 0.5, 1.25}}};
    for (int b = 0; b < file.layers.n_blocks(); ++b) file.layers.set(BlockId{b}, random() % 3 != 0);
    file.save(path);
    for (const LayerFile& loaded :
         {LayerFile::load(path), LayerFile::load(path, LayerModel{file.model, n_layers})}) {
      EXPECT_EQ(loaded.model, file.model);
      EXPECT_EQ(loaded.layers, file.layers);
      EXPECT_EQ(loaded.found.method, "swift");
      EXPECT_EQ(loaded.found.objective, "expected");
      EXPECT_EQ(loaded.found.speedup, 1.25);
      EXPECT_EQ(loaded.found.n_texts, 8);
      EXPECT_EQ(loaded.found.n_tokens, 512);
      EXPECT_EQ(loaded.found.n_candidates, 3);
      EXPECT_EQ(loaded.found.best_so_far, file.found.best_so_far);
    }
  }
}

TEST(LayerFile, IsForOneModel) {
  const test::TempDir folder;
  const auto path = folder.file("layers.json");
  EXPECT_EQ(load_error(path, {1, 4}), ErrorCode::kNotFound);
  LayerFile{.model = 1, .layers = LayerSet::none(4), .found = {}}.save(path);
  EXPECT_EQ(load_error(path, {1, 4}), std::nullopt);
  EXPECT_EQ(load_error(path, {2, 4}), ErrorCode::kInvalidArgument);
  EXPECT_EQ(load_error(path, {1, 5}), ErrorCode::kInvalidArgument);
  EXPECT_THROW(LayerFile{}.save(folder.file("none") / "layers.json"), Error);
}

TEST(LayerFile, RefusesWhatItIsNot) {
  const test::TempDir folder;
  const auto path = folder.file("layers.json");
  const auto error_of = [&](const std::string& text) {
    std::ofstream(path) << text;
    return load_error(path, {1, 4});
  };
  const auto file = [](const std::string& n_layers, const std::string& skipped,
                       const std::string& speedup) {
    return R"({"forerun_layers": 1, "model": "0000000000000001", "n_layers": )" + n_layers +
           R"(, "skipped": )" + skipped + R"(, "found": {"method": "m", "objective": "o", "speedup": )" +
           speedup + R"(, "texts": 1, "tokens": 2, "candidates": 3, "best_so_far": []}})";
  };
  EXPECT_EQ(error_of(file("4", "[7]", "1")), std::nullopt);
  EXPECT_EQ(error_of(R"({"forerun_layers": 2})"), ErrorCode::kUnsupported);
  const std::string whole = file("4", "[7]", "1");
  for (const std::string& text :
       {std::string(), std::string("{}"), std::string("[1]"), std::string("\xff\xfe"),
        std::string(R"({"forerun_layers": "x"})"), whole.substr(0, whole.size() - 1),
        file("0", "[]", "1"), file("513", "[]", "1"), file("4", "[8]", "1"), file("4", "[-1]", "1"),
        file("4", R"(["a"])", "1"), file("4", "[1.5]", "1"), file("4", "3", "1"),
        file("4", "[99999999999]", "1"), file("4", "[7]", "null"), file("4", "[7]", "1e999"),
        file("4", "[7]", R"("fast")")}) {
    EXPECT_EQ(error_of(text), ErrorCode::kInvalidFile) << text;
  }
}

}  // namespace
}  // namespace forerun
