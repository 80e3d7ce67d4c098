#include "pictures/svg_plot.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "text/utf8.h"

namespace forerun {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

bool is_finite(const PlotPoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

// Multiples of 1, 2 or 5 times a power of ten, at most `n_most` of them.
double tick_step(double range, int n_most) {
  const double least = range / n_most;
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

std::string short_number(double value) {
  for (const auto& [unit, name] : {std::pair{1e9, "G"}, std::pair{1e6, "M"}, std::pair{1e3, "k"}}) {
    if (std::abs(value) >= unit) return fmt::format("{:.4g}{}", value / unit, name);
  }
  return fmt::format("{:.4g}", value);
}

// Values to places, and which values get a tick.
class Scale {
 public:
  Scale(const PlotAxis& axis, double first_place, double last_place)
      : kind_(axis.scale), first_place_(first_place), last_place_(last_place) {
    low_ = std::isfinite(axis.low) ? std::clamp(axis.low, -kFarthest, kFarthest) : 0;
    high_ = std::isfinite(axis.high) ? std::clamp(axis.high, -kFarthest, kFarthest) : 1;
    // So narrow that ticks could not be told apart: the data are one value.
    if (high_ - low_ < 1e-6 * std::max(1.0, std::abs(low_))) high_ = low_;
    switch (kind_) {
      case AxisScale::kLog: log_ticks(); break;
      case AxisScale::kWhole: whole_ticks(); break;
      case AxisScale::kLinear:
      case AxisScale::kPercent: linear_ticks(); break;
    }
  }

  double place(double value) const {
    const double bounded = std::clamp(value, low_, high_);
    const double share = kind_ == AxisScale::kLog ? std::log(bounded / low_) / std::log(high_ / low_)
                                                  : (bounded - low_) / (high_ - low_);
    return first_place_ + share * (last_place_ - first_place_);
  }

  const std::vector<double>& ticks() const { return ticks_; }

  std::string label(double tick) const {
    if (kind_ != AxisScale::kPercent) return short_number(tick);
    return fmt::format("{:.4g}\u00A0%", 100 * tick);
  }

 private:
  static constexpr int kMostTicks = 6;
  static constexpr double kFarthest = 1e15;

  void linear_ticks() {
    if (high_ == low_) high_ = low_ + std::max(1.0, std::abs(low_));
    const double step = tick_step(high_ - low_, kMostTicks);
    low_ = std::floor(low_ / step + 1e-9) * step;
    high_ = std::ceil(high_ / step - 1e-9) * step;
    add_ticks(step);
  }

  void whole_ticks() {
    if (high_ == low_) {
      low_ -= 0.5;
      high_ += 0.5;
    }
    const double step = std::max(1.0, tick_step(high_ - low_, 10));
    add_ticks(step);
    // The first value gets a tick of its own unless the next one is too near.
    if (!ticks_.empty() && ticks_.front() - low_ > 0.6 * step) ticks_.insert(ticks_.begin(), low_);
  }

  void log_ticks() {
    const double bottom = std::floor(std::log10(std::max(low_, 1e-9)) + 1e-9);
    const double top = std::ceil(std::log10(std::max(high_, 1e-9)) - 1e-9);
    const int n = std::max(1, static_cast<int>(top - bottom));
    low_ = std::pow(10.0, bottom);
    high_ = std::pow(10.0, bottom + n);
    for (int i = 0; i <= n; ++i) ticks_.push_back(std::pow(10.0, bottom + i));
  }

  void add_ticks(double step) {
    const double first = std::ceil(low_ / step - 1e-9);
    const int n = static_cast<int>(std::floor(high_ / step + 1e-9) - first);
    for (int i = 0; i <= n; ++i) ticks_.push_back((first + i) * step);
  }

  AxisScale kind_;
  double first_place_;
  double last_place_;
  double low_;
  double high_;
  std::vector<double> ticks_;
};

struct Place {
  double x;
  double y;
};

std::string line(Place from, Place to, std::string_view css_class) {
  return fmt::format(R"(<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}" class="{}"/>)", from.x,
                     from.y, to.x, to.y, css_class);
}

// `attributes`: text-anchor and the like.
std::string text(Place at, std::string_view words, std::string_view attributes = "") {
  return fmt::format(R"(<text x="{:.1f}" y="{:.1f}" class="ink" {}>{}</text>)"
                     "\n",
                     at.x, at.y, attributes, markup_text(words));
}

constexpr std::string_view kMiddle = R"(text-anchor="middle")";
constexpr std::string_view kEnd = R"(text-anchor="end")";

// The shape of a style's marks, around `at`.
std::string mark_shape(int style, Place at) {
  constexpr int kShapes = 5;
  switch (style < 0 ? 0 : style % kShapes) {
    case 0: return fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="3.5")", at.x, at.y);
    case 1:
      return fmt::format(R"(<rect x="{:.1f}" y="{:.1f}" width="6.4" height="6.4")", at.x - 3.2,
                         at.y - 3.2);
    case 2: return fmt::format(R"(<path d="M{:.1f} {:.1f}l4.2 7.4h-8.4z")", at.x, at.y - 4.6);
    case 3:
      return fmt::format(R"(<path d="M{:.1f} {:.1f}l4.6 4.6l-4.6 4.6l-4.6 -4.6z")", at.x, at.y - 4.6);
    default: return fmt::format(R"(<path d="M{:.1f} {:.1f}l4.2 -7.4h-8.4z")", at.x, at.y + 4.6);
  }
}

std::string mark(int style, Place at, const PlotPoint& point) {
  const std::string_view css_class = point.hollow ? "mark hollow" : "mark";
  const std::string shape = mark_shape(style, at);
  if (point.label.empty()) return fmt::format("{} class=\"{}\"/>\n", shape, css_class);
  const std::string_view element = std::string_view(shape).substr(1, shape.find(' ') - 1);
  return fmt::format("{} class=\"{}\"><title>{}</title></{}>\n", shape, css_class,
                     markup_text(point.label), element);
}

std::string draw_series(const PlotSeries& series, const Scale& x, const Scale& y) {
  std::string marks, path;
  for (const PlotPoint& point : series.points) {
    if (!is_finite(point)) continue;
    const Place at{x.place(point.x), y.place(point.y)};
    if (!series.joined) {
      marks += fmt::format(R"(<circle cx="{:.1f}" cy="{:.1f}" r="2.6" class="dot"/>)"
                           "\n",
                           at.x, at.y);
      continue;
    }
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", at.x, at.y);
    marks += mark(series.style, at, point);
  }
  if (!path.empty())
    path = fmt::format("<path d=\"{0}\" class=\"halo\"/><path d=\"{0}\" class=\"line\"/>\n", path);
  return fmt::format("<g class=\"{}\">\n{}{}</g>\n", style_class(series.style), path, marks);
}

std::string open_svg(std::string_view title, int width, int height) {
  const std::string words = markup_text(title);
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n"
      "<title>{}</title>\n",
      width, height, words, words);
}

// At most `n` characters.
std::string shortened(const std::string& name, size_t n) {
  size_t n_characters = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(name[i]) & 0xC0) != 0x80;
    if (begins && ++n_characters > n) return name.substr(0, i) + "…";
  }
  return name;
}

constexpr int kRow = 21;  // of a bar
constexpr size_t kLongestName = 20;

// Of the longest name, about.
double name_width(const std::vector<PlotBar>& bars) {
  size_t n_bytes = 0;
  for (const PlotBar& bar : bars) n_bytes = std::max(n_bytes, bar.name.size());
  return 7.2 * static_cast<double>(std::clamp<size_t>(n_bytes, 4, kLongestName));
}

// The name, the bar and its whisker, the value at the right edge.
std::string draw_bar(const PlotBar& bar, const Scale& scale, double top, int width) {
  const double left = scale.place(0), middle = top + kRow / 2.0;
  std::string svg = text({left - 6, middle + 4}, shortened(bar.name, kLongestName), kEnd);
  if (!std::isfinite(bar.value)) return svg;
  svg +=
      fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{}\" class=\"bar {}\"/>\n",
                  left, top + 3, scale.place(bar.value) - left, kRow - 6, style_class(bar.style));
  if (std::isfinite(bar.low) && std::isfinite(bar.high) && bar.high > bar.low) {
    const double from = scale.place(bar.low), to = scale.place(bar.high);
    const std::string path = fmt::format("M{0:.1f} {1:.1f}H{2:.1f}M{0:.1f} {3:.1f}v6M{2:.1f} {3:.1f}v6",
                                         from, middle, to, middle - 3);
    for (const std::string_view css_class : {"halo", "whisker"}) {
      svg += fmt::format("<path d=\"{}\" class=\"{}\"/>\n", path, css_class);
    }
  }
  return svg + text({width - 2.0, middle + 4}, fmt::format("{:.2f}", bar.value), kEnd);
}

}  // namespace

std::string markup_text(std::string_view bytes) {
  Utf8Stream stream;
  std::string valid = stream.push(bytes);
  valid += stream.flush();
  std::string escaped;
  for (const char c : valid) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      case '"': escaped += "&quot;"; break;
      case '\'': escaped += "&#39;"; break;
      case '\n':
      case '\t': escaped += c; break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          escaped += kReplacement;
        } else {
          escaped += c;
        }
    }
  }
  return escaped;
}

std::string style_class(int style) {
  if (style == kInkStyle) return "inked";
  return style == kPlainStyle ? "plain" : fmt::format("s{}", style % kPlotColors);
}

std::string xy_plot(const XyPlot& plot) {
  const double left = 56, right = plot.width - 12, top = 10, bottom = plot.height - 44;
  const Scale x(plot.x, left, right);
  const Scale y(plot.y, bottom, top);
  std::string svg = open_svg(plot.title, plot.width, plot.height);
  for (const double tick : y.ticks()) {
    svg += line({left, y.place(tick)}, {right, y.place(tick)}, "grid");
    svg += text({left - 6, y.place(tick) + 4}, y.label(tick), kEnd);
  }
  for (const double tick : x.ticks()) {
    svg += line({x.place(tick), bottom}, {x.place(tick), bottom + 4}, "axis");
    svg += text({x.place(tick), bottom + 17}, x.label(tick), kMiddle);
  }
  svg += line({left, bottom}, {right, bottom}, "axis");
  if (plot.rule) svg += line({left, y.place(*plot.rule)}, {right, y.place(*plot.rule)}, "rule");
  svg += text({(left + right) / 2, plot.height - 8.0}, plot.x.title, kMiddle);
  const double middle = (top + bottom) / 2;
  svg += text({12, middle}, plot.y.title,
              fmt::format(R"-(text-anchor="middle" transform="rotate(-90 12 {:.1f})")-", middle));
  for (const PlotSeries& series : plot.series) svg += draw_series(series, x, y);
  return svg + "</svg>\n";
}

std::string bar_plot(const BarPlot& plot) {
  const double left = name_width(plot.bars) + 12, right = plot.width - 42, top = 4;
  const double bottom = top + kRow * static_cast<double>(plot.bars.size());
  const int height = static_cast<int>(bottom) + 42;
  const Scale scale(plot.axis, left, right);
  std::string svg = open_svg(plot.title, plot.width, height);
  for (const double tick : scale.ticks()) {
    svg += line({scale.place(tick), top}, {scale.place(tick), bottom}, "grid");
    svg += text({scale.place(tick), bottom + 16}, scale.label(tick), kMiddle);
  }
  for (size_t i = 0; i < plot.bars.size(); ++i) {
    svg += draw_bar(plot.bars[i], scale, top + kRow * static_cast<double>(i), plot.width);
  }
  if (plot.rule) svg += line({scale.place(*plot.rule), top}, {scale.place(*plot.rule), bottom}, "rule");
  svg += line({left, top}, {left, bottom}, "axis");
  svg += text({(left + right) / 2, height - 8.0}, plot.axis.title, kMiddle);
  return svg + "</svg>\n";
}

std::string legend_mark(int style) {
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 24 12\" class=\"key {}\" "
      "aria-hidden=\"true\"><path d=\"M0 6h24\" class=\"line\"/>{} class=\"mark\"/></svg>",
      style_class(style), mark_shape(style, {12, 6}));
}

}  // namespace forerun
