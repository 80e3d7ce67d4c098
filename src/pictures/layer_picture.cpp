#include "pictures/layer_picture.h"

#include <fmt/format.h>

#include <algorithm>

#include "pictures/svg_plot.h"

namespace forerun {
namespace {

constexpr std::string_view kKept = "\xE2\x96\x88";  // full block
constexpr std::string_view kSkipped = "\xC2\xB7";   // middle dot
constexpr int kLabelWidth = 11;                     // "attention  "

// In the SVG.
constexpr int kLeft = 80;
constexpr int kRight = 24;
constexpr int kRowHeight = 16;
constexpr int kSetHeight = 92;  // name, two rows, layer numbers, a gap
constexpr int kLeastWidth = 480;

struct Kind {
  std::string_view name;
  std::string_view style;
  BlockId (*block)(int layer);
};
constexpr Kind kKinds[] = {{"attention", "attention", attention_block}, {"MLP", "mlp", mlp_block}};

constexpr std::string_view kStyle = R"(
svg { color-scheme: light dark; font: 13px system-ui, sans-serif; }
text { fill: #1b1f24; } .soft { fill: #57606a; font-size: 11px; }
.attention { fill: #0063a6; } .mlp { fill: #d55e00; }
.skipped { fill: none; stroke: #aab2ba; stroke-width: .7; }
@media (prefers-color-scheme: dark) {
  text { fill: #e4e8ec; } .soft { fill: #9aa4af; }
  .attention { fill: #3f97dd; } .mlp { fill: #f0803c; } .skipped { stroke: #5b646e; } }
)";

std::string counts_text(const LayerSet& layers) {
  const SkippedCounts counts = skipped_counts(layers);
  return fmt::format("{} of {} blocks left out: {} of attention, {} of MLPs",
                     counts.n_attention + counts.n_mlp, layers.n_blocks(), counts.n_attention,
                     counts.n_mlp);
}

// Wide enough to see, narrow enough that deep models fit.
double cell_width(int n_layers) {
  return std::clamp(960.0 / n_layers, 4.0, 18.0);
}

// Which layers get a number.
int number_step(int n_layers) {
  return n_layers <= 40 ? 5 : n_layers <= 150 ? 10 : 50;
}

std::string set_svg(const PicturedLayers& set, int top) {
  const double cell = cell_width(set.layers.n_layers());
  const double gap = cell > 8 ? 2 : 1;
  std::string svg = fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n", top + 14, markup_text(set.name));
  const std::string note = counts_text(set.layers) + (set.note.empty() ? "" : "; " + set.note);
  svg += fmt::format("<text class=\"soft\" x=\"0\" y=\"{}\">{}</text>\n", top + 30, markup_text(note));
  int y = top + 38;
  for (const Kind& kind : kKinds) {
    svg += fmt::format("<text class=\"soft\" x=\"0\" y=\"{}\">{}</text>\n", y + 11, kind.name);
    for (int layer = 0; layer < set.layers.n_layers(); ++layer) {
      const bool runs = set.layers.runs(kind.block(layer));
      svg += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"{}\"><title>{} of layer "
          "{}: {}</title></rect>\n",
          runs ? kind.style : "skipped", kLeft + layer * cell, y, cell - gap, kRowHeight - 4, kind.name,
          layer, runs ? "kept" : "left out");
    }
    y += kRowHeight;
  }
  const int step = number_step(set.layers.n_layers());
  for (int layer = 0; layer < set.layers.n_layers(); layer += step) {
    svg += fmt::format("<text class=\"soft\" x=\"{:.1f}\" y=\"{}\">{}</text>\n", kLeft + layer * cell,
                       y + 9, layer);
  }
  return svg;
}

}  // namespace

SkippedCounts skipped_counts(const LayerSet& layers) {
  const int n_attention = layers.n_layers() - layers.n_attention();
  return {.n_attention = n_attention, .n_mlp = layers.n_blocks() - layers.n_running() - n_attention};
}

std::string layer_text(const PicturedLayers& set, int width) {
  std::string text = fmt::format("{}: {}\n", set.name, counts_text(set.layers));
  if (!set.note.empty()) text += set.note + "\n";
  const int n_layers = set.layers.n_layers();
  const int n_line = std::max(10, (width - kLabelWidth) / 10 * 10);
  for (int begin = 0; begin < n_layers; begin += n_line) {
    const int end = std::min(n_layers, begin + n_line);
    for (const Kind& kind : kKinds) {
      text += fmt::format("{:<{}}", kind.name, kLabelWidth);
      for (int layer = begin; layer < end; ++layer) {
        text += set.layers.runs(kind.block(layer)) ? kKept : kSkipped;
      }
      text += '\n';
    }
    std::string numbers;
    for (int layer = begin; layer < end; layer += 10) numbers += fmt::format("{:<10}", layer);
    numbers.resize(numbers.find_last_not_of(' ') + 1);
    text += fmt::format("{:<{}}{}\n", "layer", kLabelWidth, numbers);
  }
  return text;
}

std::string layer_svg(std::span<const PicturedLayers> sets) {
  double width = kLeastWidth;
  std::string body;
  int y = 8;
  for (const PicturedLayers& set : sets) {
    const int n_layers = set.layers.n_layers();
    width = std::max(width, kLeft + n_layers * cell_width(n_layers) + kRight);
    body += set_svg(set, y);
    y += kSetHeight;
  }
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"-8 0 {0:.0f} {1}\" width=\"{0:.0f}\" "
      "height=\"{1}\" role=\"img\">\n<title>Blocks that run when the model drafts for "
      "itself</title>\n<style>{2}</style>\n{3}</svg>\n",
      width + 16, y, kStyle, body);
}

}  // namespace forerun
