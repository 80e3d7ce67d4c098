// Plots as SVG, for pages without scripts.
//
// A series has a style: its colour and the shape of its marks. Colours come from the page
// (classes "s0", "s1", ..., "plain" and "inked" for styles; "ink", "grid", "axis", "rule", "bar",
// "whisker", "halo", "line", "mark", "hollow" and "dot" for what is drawn), so that one plot serves
// light and dark screens. Numbers that are not finite are left out. All functions are pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace forerun {

// Text for between tags and in attributes: escaped, valid UTF-8 whatever the bytes are, and
// without control characters (line breaks and tabs stay).
std::string markup_text(std::string_view bytes);

constexpr int kPlotColors = 9;
constexpr int kPlainStyle = -1;  // for what the others are compared with
constexpr int kInkStyle = -2;    // as dark as text, for lines through clouds
std::string style_class(int style);

enum class AxisScale {
  kLinear,
  kWhole,    // linear with ticks at whole numbers; ends where the data end
  kPercent,  // linear, 0.5 is shown as 50 %
  kLog,      // from a power of ten to another
};

struct PlotAxis {
  std::string title;
  AxisScale scale = AxisScale::kLinear;
  double low = 0;  // widened to ticks
  double high = 1;
};

struct PlotPoint {
  double x = 0;
  double y = 0;
  std::string label = {};  // shown when pointed at
  bool hollow = false;
};

struct PlotSeries {
  int style = 0;
  bool joined = true;  // by a line; else a cloud of faint dots
  std::vector<PlotPoint> points;
};

// Points that lie outside the axes are drawn at their ends.
struct XyPlot {
  std::string title;  // read aloud, and shown when pointed at
  int width = 400;
  int height = 280;
  PlotAxis x;
  PlotAxis y;
  std::optional<double> rule;  // a line at this y
  std::vector<PlotSeries> series;
};
std::string xy_plot(const XyPlot& plot);

struct PlotBar {
  std::string name;
  int style = 0;
  double value = 0;
  double low = 0;  // the whisker
  double high = 0;
};

// Horizontal bars from 0, each with its name and its value.
struct BarPlot {
  std::string title;
  int width = 340;
  PlotAxis axis;
  std::optional<double> rule;  // a line at this value
  std::vector<PlotBar> bars;
};
std::string bar_plot(const BarPlot& plot);

// The mark of a style, for a legend.
std::string legend_mark(int style);

}  // namespace forerun
