// Which blocks sets of layers keep and leave out, as pictures: for terminals and as SVG.
//
// A row for attention and one for MLPs, a cell per layer. All functions are pure.
#pragma once

#include <span>
#include <string>

#include "model/layer_set.h"

namespace forerun {

struct PicturedLayers {
  std::string name;
  LayerSet layers;
  std::string note = {};  // one line more, or none
};

// Blocks that a set leaves out.
struct SkippedCounts {
  int n_attention = 0;
  int n_mlp = 0;
};
SkippedCounts skipped_counts(const LayerSet& layers);

// Lines of at most `width` columns, as far as names go.
std::string layer_text(const PicturedLayers& set, int width = 80);

// A whole SVG file; its colours follow the reader's light or dark screen.
std::string layer_svg(std::span<const PicturedLayers> sets);

}  // namespace forerun
