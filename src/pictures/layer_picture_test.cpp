#include "pictures/layer_picture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "pictures/markup_check.h"

namespace forerun {
namespace {

LayerSet some_layers() {
  LayerSet layers = LayerSet::full(12);
  for (const int block : {2, 3, 5, 22}) layers.set(BlockId{block}, false);
  return layers;
}

TEST(LayerPicture, Counts) {
  const SkippedCounts counts = skipped_counts(some_layers());
  EXPECT_EQ(counts.n_attention, 2);
  EXPECT_EQ(counts.n_mlp, 2);
}

TEST(LayerPicture, OnATerminal) {
  EXPECT_EQ(layer_text({.name = "a.json", .layers = some_layers(), .note = "found by hand"}),
            "a.json: 4 of 24 blocks left out: 2 of attention, 2 of MLPs\n"
            "found by hand\n"
            "attention  █·█████████·\n"
            "MLP        █··█████████\n"
            "layer      0         10\n");
}

TEST(LayerPicture, DeepModelsTakeSeveralLines) {
  const std::string text = layer_text({.name = "deep", .layers = LayerSet::full(135)}, 80);
  std::istringstream lines(text);
  int n_lines = 0;
  for (std::string line; std::getline(lines, line); ++n_lines) {
    size_t n_columns = 0;
    for (const char c : line) n_columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
    EXPECT_LE(n_columns, 80u) << line;
  }
  EXPECT_EQ(n_lines, 1 + 3 * 3);
  EXPECT_EQ(count_of(text, "█"), 270u);
  EXPECT_EQ(count_of(text, "·"), 0u);
}

TEST(LayerPicture, AsSvg) {
  const std::vector<PicturedLayers> sets{
      {.name = "<a> & \"b\"\x01", .layers = some_layers()},
      {.name = "deep", .layers = LayerSet::none(300), .note = "x < y"}};
  const std::string svg = layer_svg(sets);
  EXPECT_EQ(markup_fault(svg), "");
  EXPECT_EQ(count_of(svg, "<rect "), 24u + 600u);
  EXPECT_EQ(count_of(svg, "class=\"skipped\""), 4u + 600u);
  EXPECT_EQ(count_of(svg, "class=\"attention\""), 10u);
  EXPECT_THAT(svg, testing::HasSubstr("prefers-color-scheme: dark"));
  EXPECT_EQ(markup_fault(layer_svg({})), "");
}

}  // namespace
}  // namespace forerun
